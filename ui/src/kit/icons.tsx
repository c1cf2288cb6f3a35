/** Every icon of the console, drawn for it on a 16 x 16 grid. The shape of a state tells it without colour:
 * disc = over well, octagon = over badly, diamond = needs you, triangle = unknown, ring = open, dashes = not started or being undone. */
import type { ComponentChildren, JSX } from 'preact';

const line = { fill: 'none', stroke: 'currentColor', 'stroke-width': 1.5, 'stroke-linecap': 'round', 'stroke-linejoin': 'round' } as const;
const cut = { ...line, stroke: 'var(--cut, var(--surface))', 'stroke-width': 1.6 } as const;
const disc = <circle cx="8" cy="8" r="6.75" fill="currentColor" />;
const ring = <circle cx="8" cy="8" r="6" {...line} />;
const octagon = <path d="M5.2 1.4h5.6l3.8 3.8v5.6l-3.8 3.8H5.2l-3.8-3.8V5.2z" fill="currentColor" />;
const back = 'M5.2 6.6h3.6a2 2 0 0 1 0 4H7M5.2 6.6 7 4.8M5.2 6.6 7 8.4';
const person = (
  <g {...line}>
    <circle cx="8" cy="5" r="2.75" />
    <path d="M2.75 14c.3-3 2.3-4.5 5.25-4.5s4.95 1.5 5.25 4.5" />
  </g>
);
const robot = (
  <g {...line}>
    <rect x="1.75" y="5" width="12.5" height="8.25" rx="2.5" />
    <path d="M8 5V2.5M5.75 8.5v1.25M10.25 8.5v1.25" />
  </g>
);
const clock = (
  <g {...line}>
    <circle cx="8" cy="8" r="6.25" />
    <path d="M8 4.5V8l2.5 1.5" />
  </g>
);

const DRAWN = {
  running: (
    <g class="turning">
      <circle cx="8" cy="8" r="6" {...line} opacity="0.3" />
      <path d="M8 2a6 6 0 0 1 6 6" {...line} />
      <circle cx="8" cy="8" r="2" fill="currentColor" />
    </g>
  ),
  person,
  robot,
  clock,
  decision: (
    <g>
      <path d="M8 1.2 14.8 8 8 14.8 1.2 8z" {...line} />
      <path d="M6.7 6.6a1.35 1.35 0 1 1 1.9 1.25c-.4.2-.6.45-.6.9M8 10.7v.05" {...line} stroke-width="1.4" />
    </g>
  ),
  paused: (
    <g>
      {ring}
      <path d="M6.5 6v4M9.5 6v4" {...line} />
    </g>
  ),
  completed: (
    <g>
      {disc}
      <path d="m5.2 8.2 2 2 3.8-4.2" {...cut} />
    </g>
  ),
  failed: (
    <g>
      {octagon}
      <path d="m5.9 5.9 4.2 4.2M10.1 5.9l-4.2 4.2" {...cut} />
    </g>
  ),
  cancelled: (
    <g>
      {ring}
      <rect x="5.75" y="5.75" width="4.5" height="4.5" rx="0.75" fill="currentColor" />
    </g>
  ),
  skipped: (
    <g>
      {ring}
      <path d="m5.4 6 2 2-2 2M8.6 6l2 2-2 2" {...line} stroke-width="1.3" />
    </g>
  ),
  pending: <circle cx="8" cy="8" r="6" {...line} stroke-dasharray="0.1 2.59" />,
  ready: (
    <g>
      {ring}
      <circle cx="8" cy="8" r="1.75" fill="currentColor" />
    </g>
  ),
  uncertain: (
    <g>
      <path d="M8 1.6 15 14H1z" fill="currentColor" stroke="currentColor" stroke-width="1.2" stroke-linejoin="round" />
      <path d="M6.9 7.4a1.15 1.15 0 1 1 1.6 1.05c-.35.15-.5.35-.5.75M8 11.6v.05" {...cut} stroke-width="1.3" />
    </g>
  ),
  undoing: (
    <g>
      <circle cx="8" cy="8" r="6.25" {...line} stroke-dasharray="2.6 2.3" class="turning back" />
      <path d={back} {...line} stroke-width="1.3" />
    </g>
  ),
  undone: (
    <g>
      {disc}
      <path d={back} {...cut} stroke-width="1.4" />
    </g>
  ),
  undo_failed: (
    <g>
      {octagon}
      <path d={back} {...cut} stroke-width="1.4" />
    </g>
  ),
  warning: (
    <g {...line}>
      <path d="M8 2 14.5 13.5h-13z" />
      <path d="M8 6.5v3M8 11.5v.05" />
    </g>
  ),
  shield: (
    <g {...line}>
      <path d="M8 1.5 13.25 3.4v4.1c0 3.3-2 5.7-5.25 7-3.25-1.3-5.25-3.7-5.25-7V3.4z" />
      <path d="m5.75 7.75 1.6 1.6 2.9-3.2" />
    </g>
  ),
  home: <path d="M2.5 7.2 8 2.4l5.5 4.8v6.3h-3.75V9.75h-3.5v3.75H2.5z" {...line} />,
  runs: <path d="M5.75 4h8M5.75 8h8M5.75 12h8M2.25 4h.5M2.25 8h.5M2.25 12h.5" {...line} />,
  approvals: (
    <g {...line}>
      <rect x="2" y="2" width="12" height="12" rx="2.5" />
      <path d="m5.25 8.2 1.9 1.9 3.6-4.1" />
    </g>
  ),
  library: <path d="M8 3.5C6.5 2.6 4.5 2.4 2 2.5v10c2.5-.1 4.5.1 6 1 1.5-.9 3.5-1.1 6-1v-10c-2.5-.1-4.5.1-6 1zm0 0v10" {...line} />,
  plans: (
    <g {...line}>
      <path d="M4 1.75h5.5l3 3v9.5H4zM9.25 1.75V5H12.5" />
      <path d="M6.25 8.25h4M6.25 11h2.5" />
    </g>
  ),
  tools: <path d="M5.5 1.75v3.5M10.5 1.75v3.5M3.5 5.25h9v2a4.5 4.5 0 0 1-9 0zM8 11.75v2.5" {...line} />,
  insight: <path d="M1.75 14.25h12.5M4 11.5V7.5M8 11.5V3M12 11.5V9" {...line} stroke-width="1.9" />,
  settings: (
    <g {...line}>
      <path d="M2 4.75h6M12 4.75h2M2 11.25h2M8 11.25h6" />
      <circle cx="10" cy="4.75" r="1.75" />
      <circle cx="6" cy="11.25" r="1.75" />
    </g>
  ),
  more: <path d="M3.25 8h.01M8 8h.01M12.75 8h.01" {...line} stroke-width="2.2" />,
  search: (
    <g {...line}>
      <circle cx="7" cy="7" r="4.75" />
      <path d="m10.5 10.5 3.5 3.5" />
    </g>
  ),
  tick: <path d="m3.5 8.5 3 3 6-7" {...line} />,
  close: <path d="m4 4 8 8M12 4l-8 8" {...line} />,
  link: <path d="M6.5 9.5a2.75 2.75 0 0 0 4 .2l2.2-2.2a2.75 2.75 0 0 0-3.9-3.9l-.8.8M9.5 6.5a2.75 2.75 0 0 0-4-.2L3.3 8.5a2.75 2.75 0 0 0 3.9 3.9l.8-.8" {...line} />,
  copy: (
    <g {...line}>
      <rect x="5.5" y="5.5" width="8.5" height="8.5" rx="2" />
      <path d="M3.25 10.5A1.5 1.5 0 0 1 2 9V3.5A1.5 1.5 0 0 1 3.5 2H9a1.5 1.5 0 0 1 1.4 1" />
    </g>
  ),
  bolt: <path d="M9 1.5 3 9h4.5L7 14.5 13 7H8.5z" {...line} stroke-width="1.35" />,
  said: <path d="M2 3h12v8.25H7.25L4.5 13.75v-2.5H2z" {...line} />,
  undo: <path d="M3 6h6.25a3.5 3.5 0 0 1 0 7H6.5M3 6l3-3M3 6l3 3" {...line} />,
  play: <path d="M4.5 2.75v10.5L13 8z" fill="currentColor" />,
  lock: (
    <g {...line}>
      <rect x="3" y="7" width="10" height="7" rx="1.75" />
      <path d="M5.25 7V4.75a2.75 2.75 0 0 1 5.5 0V7" />
    </g>
  ),
  down: <path d="m4 6 4 4 4-4" {...line} />,
  right: <path d="m6 4 4 4-4 4" {...line} />,
  loop: <path d="M5.75 4h8M5.75 8h8M5.75 12h8M2.25 4h.5M2.25 8h.5M2.25 12h.5" {...line} />,
  filter: <path d="M2 4h12M4.5 8h7M7 12h2" {...line} />,
  dot: <circle cx="8" cy="8" r="4.25" fill="currentColor" />,
  sun: (
    <g {...line}>
      <circle cx="8" cy="8" r="2.75" />
      <path d="M8 1.5v1.25M8 13.25v1.25M1.5 8h1.25M13.25 8h1.25M3.4 3.4l.9.9M11.7 11.7l.9.9M12.6 3.4l-.9.9M4.3 11.7l-.9.9" />
    </g>
  ),
  project: <path d="M1.75 4.25A1.25 1.25 0 0 1 3 3h3l1.5 1.75H13a1.25 1.25 0 0 1 1.25 1.25v5.75A1.25 1.25 0 0 1 13 13H3a1.25 1.25 0 0 1-1.25-1.25z" {...line} />,
} satisfies Record<string, JSX.Element>;

export type IconName = keyof typeof DRAWN;

interface IconProps {
  name: IconName;
  size?: number;
  /** Said by screen readers; without it the icon is decoration beside a word. */
  label?: string;
  tone?: string;
}

export function Icon({ name, size = 16, label, tone }: IconProps): JSX.Element {
  const named = label ? { role: 'img' as const, 'aria-label': label } : { 'aria-hidden': true as const };
  return (
    <svg class={`icon${tone ? ` c-${tone}` : ''}`} width={size} height={size} viewBox="0 0 16 16" {...named}>
      {DRAWN[name]}
    </svg>
  );
}

/** The mark of handrail: a rail above stairs. */
export function Mark({ size = 18 }: { size?: number }): JSX.Element {
  return (
    <svg class="icon" width={size} height={size} viewBox="0 0 16 16" aria-hidden>
      <path d="M3 14h2.75v-2.75H8.5V8.5h2.75V5.75H14" fill="none" stroke="var(--ctl)" stroke-width="1.6" />
      <path d="M2.5 9.5 9.5 2.5" stroke="currentColor" stroke-width="2" stroke-linecap="round" />
    </svg>
  );
}

export function Labelled({ name, tone, children }: { name: IconName; tone?: string; children: ComponentChildren }): JSX.Element {
  return (
    <span class="labelled">
      <Icon name={name} size={14} tone={tone} />
      <span>{children}</span>
    </span>
  );
}
