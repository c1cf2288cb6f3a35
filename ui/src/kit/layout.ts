/** A layered layout of boxes and arrows: pure, so that it can be tested by its numbers.
 * A box stands one layer after the last of those it follows; inside a layer boxes are ordered by where their arrows come from. */

export interface Box {
  id: string;
  width: number;
  height: number;
}
export interface Arrow {
  source: string;
  target: string;
}
export interface Placed {
  x: number;
  y: number;
  width: number;
  height: number;
  layer: number;
}
export interface Layout {
  boxes: ReadonlyMap<string, Placed>;
  arrows: readonly (Arrow & { path: string })[];
  width: number;
  height: number;
}

export interface LayoutOptions {
  down?: boolean;
  gap?: number;
  spread?: number;
}

export function layout(boxes: readonly Box[], arrows: readonly Arrow[], { down = false, gap = 30, spread = 20 }: LayoutOptions = {}): Layout {
  const byId = new Map(boxes.map((box) => [box.id, box]));
  const own = arrows.filter((arrow) => byId.has(arrow.source) && byId.has(arrow.target) && arrow.source !== arrow.target);
  const layers = layersOf(boxes, own);
  order(layers, own);
  const along = (box: Box): number => (down ? box.height : box.width);
  const across = (box: Box): number => (down ? box.width : box.height);
  const breadth = layers.map((layer) => layer.reduce((sum, box) => sum + across(box), 0) + spread * Math.max(0, layer.length - 1));
  const widest = Math.max(0, ...breadth);
  const placed = new Map<string, Placed>();
  let at = 0;
  layers.forEach((layer, index) => {
    const thick = Math.max(0, ...layer.map(along));
    let cross = (widest - breadth[index]!) / 2;
    for (const box of layer) {
      const main = at + (thick - along(box)) / 2;
      placed.set(box.id, { x: down ? cross : main, y: down ? main : cross, width: box.width, height: box.height, layer: index });
      cross += across(box) + spread;
    }
    at += thick + gap;
  });
  const length = Math.max(0, at - gap);
  return {
    boxes: placed,
    arrows: own.map((arrow) => ({ ...arrow, path: curve(placed.get(arrow.source)!, placed.get(arrow.target)!, down) })),
    width: down ? widest : length,
    height: down ? length : widest,
  };
}

function layersOf(boxes: readonly Box[], arrows: readonly Arrow[]): Box[][] {
  const before = new Map<string, string[]>();
  for (const { source, target } of arrows) before.set(target, [...(before.get(target) ?? []), source]);
  const level = new Map<string, number>();
  const visit = (id: string, trail: ReadonlySet<string>): number => {
    const known = level.get(id);
    if (known !== undefined) return known;
    if (trail.has(id)) return 0; // a circle can't be in a definition; a picture of one must still end
    const sources = before.get(id) ?? [];
    const found = sources.length ? 1 + Math.max(...sources.map((one) => visit(one, new Set([...trail, id])))) : 0;
    level.set(id, found);
    return found;
  };
  const layers: Box[][] = [];
  for (const box of boxes) {
    const at = visit(box.id, new Set());
    (layers[at] ??= []).push(box);
  }
  return Array.from(layers, (layer) => layer ?? []);
}

function order(layers: Box[][], arrows: readonly Arrow[]): void {
  const slot = new Map<string, number>();
  layers.forEach((layer) => {
    const weight = new Map(
      layer.map((box, index) => {
        const from = arrows.filter((arrow) => arrow.target === box.id).map((arrow) => slot.get(arrow.source) ?? 0);
        return [box.id, from.length ? from.reduce((sum, one) => sum + one, 0) / from.length + index / 1_000 : index];
      }),
    );
    layer.sort((a, b) => weight.get(a.id)! - weight.get(b.id)!);
    layer.forEach((box, index) => slot.set(box.id, index - (layer.length - 1) / 2));
  });
}

function curve(from: Placed, to: Placed, down: boolean): string {
  const [x1, y1] = down ? [from.x + from.width / 2, from.y + from.height] : [from.x + from.width, from.y + from.height / 2];
  const [x2, y2] = down ? [to.x + to.width / 2, to.y - 2] : [to.x - 2, to.y + to.height / 2];
  if (down ? x1 === x2 : y1 === y2) return `M${x1} ${y1}L${x2} ${y2}`;
  const bend = Math.min(40, (down ? y2 - y1 : x2 - x1) / 2 + 6);
  return down ? `M${x1} ${y1}C${x1} ${y1 + bend} ${x2} ${y2 - bend} ${x2} ${y2}` : `M${x1} ${y1}C${x1 + bend} ${y1} ${x2 - bend} ${y2} ${x2} ${y2}`;
}
