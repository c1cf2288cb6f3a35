/** The scale of a timeline: long stretches in which nothing is at work are drawn short, with their true length beside them. Pure. */

export interface Span {
  from: number;
  to: number;
}
export interface Piece extends Span {
  x: number;
  width: number;
  isGap: boolean;
}
export interface Scale {
  pieces: readonly Piece[];
  x: (at: number) => number;
  from: number;
  to: number;
}

const GAP_SHARE = 0.09;
const LEAST_GAP_MS = 1_500;

/** `busy` are the stretches of work; x runs from 0 to 1. */
export function scaleOf(whole: Span, busy: readonly Span[], compress: boolean): Scale {
  const length = Math.max(1, whole.to - whole.from);
  const gaps = compress ? gapsOf(whole, busy, length) : [];
  const quiet = gaps.reduce((sum, gap) => sum + gap.to - gap.from, 0);
  const share = Math.min(GAP_SHARE, 0.4 / Math.max(1, gaps.length));
  const worked = Math.max(1, length - quiet);
  const room = 1 - gaps.length * share;
  const pieces: Piece[] = [];
  let at = whole.from;
  let x = 0;
  const add = (to: number, isGap: boolean): void => {
    const width = isGap ? share : ((to - at) / worked) * room;
    if (to > at) pieces.push({ from: at, to, x, width, isGap });
    x += to > at ? width : 0;
    at = to;
  };
  for (const gap of gaps) {
    add(gap.from, false);
    add(gap.to, true);
  }
  add(whole.to, false);
  return { pieces, from: whole.from, to: whole.to, x: (time) => place(pieces, time) };
}

function place(pieces: readonly Piece[], time: number): number {
  const piece = pieces.find((one) => time <= one.to) ?? pieces[pieces.length - 1];
  if (!piece) return 0;
  const share = Math.min(1, Math.max(0, (time - piece.from) / Math.max(1, piece.to - piece.from)));
  return piece.x + share * piece.width;
}

function gapsOf(whole: Span, busy: readonly Span[], length: number): readonly Span[] {
  const sorted = [...busy].filter((one) => one.to > one.from || one.from).sort((a, b) => a.from - b.from);
  const gaps: Span[] = [];
  let end = whole.from;
  for (const one of [...sorted, { from: whole.to, to: whole.to }]) {
    if (one.from - end > 0) gaps.push({ from: end, to: one.from });
    end = Math.max(end, one.to);
  }
  const worked = length - gaps.reduce((sum, gap) => sum + gap.to - gap.from, 0);
  const least = Math.max(LEAST_GAP_MS, worked * 0.15);
  return gaps.filter((gap) => gap.to - gap.from > least).slice(0, 12);
}

const STEPS = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1_000, 2_000, 5_000, 10_000, 15_000, 30_000, 60_000, 120_000, 300_000, 600_000, 1_800_000, 3_600_000, 7_200_000, 21_600_000, 86_400_000];

/** How far from the middle of a gap its words reach. */
const WORDS_REACH = 0.075;

/** Round times for the axis, in milliseconds from the start; none inside gaps, or where the words of one stand. */
export function ticksOf(scale: Scale, most = 10): readonly number[] {
  const worked = scale.pieces.filter((piece) => !piece.isGap).reduce((sum, piece) => sum + piece.to - piece.from, 0);
  const step = STEPS.find((one) => worked / one <= most) ?? STEPS[STEPS.length - 1]!;
  const ticks: number[] = [];
  let last = -1;
  for (const piece of scale.pieces) {
    if (piece.isGap) continue;
    const first = Math.ceil((piece.from - scale.from) / step) * step;
    for (let at = first; scale.from + at <= piece.to && ticks.length < 60; at += step) {
      const x = scale.x(scale.from + at);
      if (x - last < 0.055 && last >= 0) continue;
      if (scale.pieces.some((one) => one.isGap && Math.abs(one.x + one.width / 2 - x) < WORDS_REACH)) continue;
      ticks.push(at);
      last = x;
    }
  }
  return ticks;
}
