/** The picture of a workflow: its steps in order, with who does each. It wraps like text, so that it fits any width. */
import type { JSX } from 'preact';
import { useEffect, useRef, useState } from 'preact/hooks';
import type { Graph, GraphNode } from '../core/contract';
import { Icon, type IconName } from './icons';
import { layout } from './layout';

const SIZE = { width: 140, height: 62 };
const HANDS: Record<string, { icon: IconName; word: string }> = {
  agent: { icon: 'robot', word: 'agent' },
  person: { icon: 'person', word: 'person' },
  handrail: { icon: 'bolt', word: 'handrail' },
};

export function Flow({ graph }: { graph: Graph }): JSX.Element {
  const box = useRef<HTMLDivElement>(null);
  const [width, setWidth] = useState(900);
  useEffect(() => {
    const watch = new ResizeObserver(([entry]) => entry && setWidth(entry.contentRect.width));
    if (box.current) watch.observe(box.current);
    return () => watch.disconnect();
  }, []);
  const tops = (graph.nodes ?? []).filter((node) => !node.parent);
  const drawn = layout(tops.map((node) => ({ id: node.id, ...SIZE })), graph.edges ?? [], { gap: 26, spread: 16 });
  const isChain = [...drawn.boxes.values()].every((one, _, all) => all.filter((other) => other.layer === one.layer).length === 1);
  const columns = Math.max(1, Math.floor((width + 26) / (SIZE.width + 26)));
  const wraps = isChain && drawn.width > width;
  const at = (node: GraphNode, index: number): { x: number; y: number } => (wraps ? { x: (index % columns) * (SIZE.width + 26), y: Math.floor(index / columns) * (SIZE.height + 34) } : drawn.boxes.get(node.id)!);
  const lines = wraps ? tops.slice(1).map((_, index) => bent(at(tops[index]!, index), at(tops[index + 1]!, index + 1))) : drawn.arrows.map((arrow) => arrow.path);
  const height = wraps ? Math.ceil(tops.length / columns) * (SIZE.height + 34) - 30 : drawn.height;
  return (
    <div class="flow" ref={box} tabIndex={0} role="group" aria-label="Picture of the steps">
      <ol class="graph" aria-label="Steps in order" style={{ width: `${wraps ? width : drawn.width}px`, height: `${height}px`, margin: '0' }}>
        {tops.map((node, index) => {
          const place = at(node, index);
          const hand = node.kind === 'each' || node.kind === 'repeat' ? { icon: 'loop' as const, word: 'loop' } : node.kind === 'workflow' ? { icon: 'library' as const, word: 'workflow' } : HANDS[node.hand ?? ''] ?? HANDS[node.kind === 'prompt' ? 'agent' : node.kind === 'approve' ? 'person' : 'handrail']!;
          return (
            <li key={node.id} class="node" title={node.title} style={{ left: `${place.x}px`, top: `${place.y}px`, width: `${SIZE.width}px`, height: `${SIZE.height}px` }}>
              <Icon name={hand.icon} size={14} tone="2" />
              <b>{node.title}</b>
              <span class={`meta${node.effect === 'irreversible' ? ' c-bad' : ''}`}>{node.effect === 'irreversible' ? 'cannot be undone' : hand.word}</span>
            </li>
          );
        })}
        <li aria-hidden>
          <svg class="edges" width={drawn.width} height={height}>
            <defs>
              <marker id="flow-head" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto">
                <path d="M1 1l6 3-6 3" fill="none" stroke="var(--ctl)" stroke-width="1.3" />
              </marker>
            </defs>
            {lines.map((path) => (
              <path key={path} class="edge" d={path} marker-end="url(#flow-head)" />
            ))}
          </svg>
        </li>
      </ol>
    </div>
  );
}

function bent(from: { x: number; y: number }, to: { x: number; y: number }): string {
  const y = from.y + SIZE.height / 2;
  if (from.y === to.y) return `M${from.x + SIZE.width} ${y}L${to.x - 2} ${y}`;
  const middle = from.y + SIZE.height + 16;
  return `M${from.x + SIZE.width / 2} ${from.y + SIZE.height}V${middle}H${to.x + SIZE.width / 2}V${to.y - 2}`;
}
