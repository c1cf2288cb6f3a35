/** The palette: one field for runs, workflows, pages and actions. Results from memory at once; the server's below them. */
import type { JSX } from 'preact';
import { useEffect, useMemo, useRef, useState } from 'preact/hooks';
import { read, useRead } from '../core/api';
import type { EventPage, LibraryPage, RunPage } from '../core/contract';
import { mod, typedAhead } from '../core/keys';
import { opened, project } from '../core/project';
import { go } from '../core/router';
import { lookOf, runHref, runName } from '../core/runs';
import { toggleTheme } from '../core/theme';
import { actor, clock, spaced } from '../core/words';
import { Icon, type IconName } from '../kit/icons';
import { Dialog } from '../kit/kit';
import { commands } from './commands';
import { PLACES } from './places';
import { overlay } from './shell';

interface Found {
  group: string;
  id: string;
  word: string;
  note?: string;
  icon: IconName;
  tone?: string;
  href?: string;
  act?: () => void;
  keys?: string;
}

const SERVER_MS = 120;
const MOST = 40;

export function Palette(): JSX.Element {
  const [text, setText] = useState(typedAhead);
  const [at, setAt] = useState(0);
  const [late, setLate] = useState<readonly Found[]>([]);
  const runs = useRead<RunPage>('/runs?limit=100').data;
  const library = useRead<LibraryPage>('/library?limit=100').data;
  const list = useRef<HTMLDivElement>(null);
  const close = (): void => overlay.set('');
  const near = useMemo(() => fromMemory(text, runs, library), [text, runs, library]);
  useEffect(() => askServer(text, setLate), [text]);
  const found = [...near, ...late.filter((one) => !near.some((other) => other.id === one.id))].slice(0, MOST);
  const chosen = Math.min(at, Math.max(0, found.length - 1));
  useEffect(() => {
    list.current?.querySelector('[aria-selected=true]')?.scrollIntoView({ block: 'nearest' });
  }, [chosen]);

  const open = (one: Found | undefined, apart: boolean): void => {
    if (!one) return;
    close();
    if (one.act) one.act();
    else if (one.href && apart) window.open(one.href, '_blank', 'noopener');
    else if (one.href) go(one.href);
  };
  const onKeyDown = (event: KeyboardEvent): void => {
    const move = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (move) {
      event.preventDefault();
      setAt((chosen + move + found.length) % Math.max(1, found.length));
    } else if (event.key === 'Enter') {
      event.preventDefault();
      open(found[chosen], event.metaKey || event.ctrlKey);
    }
  };
  return (
    <Dialog label="Search or go to" onClose={close}>
      <div class="palette" onKeyDown={onKeyDown}>
        <div class="ask">
          <Icon name="search" />
          <input
            type="text"
            role="combobox"
            aria-expanded="true"
            aria-controls="found"
            aria-activedescendant={found[chosen] ? `found-${chosen}` : undefined}
            aria-label="Search runs, workflows, pages and actions"
            placeholder="Search runs, workflows, pages and actions"
            value={text}
            onInput={(event) => {
              setText(event.currentTarget.value);
              setAt(0);
            }}
          />
          <kbd aria-hidden>esc</kbd>
        </div>
        <div class="found" id="found" role="listbox" aria-label="Found" ref={list}>
          {found.map((one, index) => (
            <>
              {one.group !== found[index - 1]?.group ? <h3 role="presentation">{one.group}</h3> : null}
              <div
                key={one.id}
                id={`found-${index}`}
                role="option"
                aria-selected={index === chosen}
                onPointerMove={() => setAt(index)}
                onClick={(event) => open(one, event.metaKey || event.ctrlKey)}
              >
                <Icon name={one.icon} tone={one.tone ?? '2'} />
                <span class="cut">
                  {one.word} <span class="c-3">{one.note}</span>
                </span>
                {one.keys ? <kbd style={{ marginLeft: 'auto' }}>{one.keys}</kbd> : null}
              </div>
            </>
          ))}
          {found.length ? null : <p class="empty c-3">Nothing is called that.</p>}
        </div>
        <footer>
          <span>
            <kbd>↑</kbd> <kbd>↓</kbd> move
          </span>
          <span>
            <kbd>↵</kbd> open
          </span>
          <span>
            <kbd>{mod} ↵</kbd> new tab
          </span>
          <span style={{ marginLeft: 'auto' }}>
            Type <b>&gt;</b> for actions, <b>#</b> for entries, <b>@</b> for people
          </span>
        </footer>
      </div>
    </Dialog>
  );
}

const fits = (words: string, text: string): boolean => {
  const low = words.toLowerCase();
  return text
    .toLowerCase()
    .split(/\s+/)
    .every((part) => low.includes(part));
};

function fromMemory(text: string, runs: RunPage | undefined, library: LibraryPage | undefined): readonly Found[] {
  const asked = text.trim();
  const kind = /^[>#@]/.exec(asked)?.[0] ?? '';
  const words = kind ? asked.slice(1).trim() : asked;
  const found: Found[] = [];
  if (kind === '' || kind === '>') {
    for (const one of commands()) {
      if (fits(`${one.word} ${one.note ?? ''}`, words)) found.push({ group: 'Do', id: `do ${one.word}`, icon: one.icon, word: one.word, note: one.note, tone: one.tone, href: one.href, act: one.act, keys: one.key });
    }
    if (words && fits('light dark theme', words)) found.push({ group: 'Do', id: 'theme', icon: 'sun', word: 'Light or dark', act: toggleTheme, keys: '.' });
    if (words && fits('keys keyboard help', words)) found.push({ group: 'Do', id: 'keys', icon: 'said', word: 'All keys', act: () => overlay.set('keys'), keys: '?' });
  }
  if (kind === '' || kind === '@') {
    for (const run of runs?.runs ?? []) {
      const by = (run as { starter?: string }).starter ?? '';
      if (!fits(kind === '@' ? by : `${runName(run)} ${run.run} ${run.workflow} ${lookOf(run).word} ${by}`, words)) continue;
      const look = lookOf(run);
      found.push({ group: 'Runs', id: run.run, icon: look.icon, tone: look.tone, word: runName(run), note: `${look.word.toLowerCase()} · ${clock(run.started, false)}`, href: runHref(run.run) });
      if (found.filter((one) => one.group === 'Runs').length >= 8) break;
    }
  }
  if (kind === '') {
    for (const flow of library?.workflows ?? []) {
      if (words && fits(`${flow.name} ${flow.id} ${flow.category ?? ''}`, words)) found.push({ group: 'Workflows', id: `flow ${flow.id}`, icon: 'library', word: flow.name, note: flow.id, href: `/library/${flow.id}` });
    }
    for (const one of opened.value) {
      if (one.id !== project.value && fits(`project ${one.name}`, words)) found.push({ group: 'Projects', id: one.id, icon: 'project', word: one.name, note: one.folder, href: `/?project=${one.id}` });
    }
    for (const place of PLACES) {
      if (fits(place.word, words)) found.push({ group: 'Go to', id: place.href, icon: place.icon, word: place.word, href: place.href, keys: `g ${place.key}` });
    }
  }
  return found;
}

function askServer(text: string, give: (found: readonly Found[]) => void): () => void {
  give([]);
  const words = text.trim().replace(/^[#@]/, '');
  if (words.length < 2 || text.startsWith('>')) return () => undefined;
  const timer = setTimeout(() => {
    const asked = encodeURIComponent(words);
    const wantsEntries = text.startsWith('#');
    void Promise.allSettled([wantsEntries ? Promise.resolve({ runs: [] }) : read<RunPage>(`/runs?q=${asked}&limit=8`), read<EventPage>(`/journal?text=${asked}&limit=8`)]).then(([runs, entries]) => {
      const found: Found[] = [];
      if (runs.status === 'fulfilled') {
        for (const run of runs.value.runs ?? []) {
          const look = lookOf(run);
          found.push({ group: 'Runs that say so', id: run.run, icon: look.icon, tone: look.tone, word: runName(run), note: run.run, href: runHref(run.run) });
        }
      }
      if (entries.status === 'fulfilled') {
        for (const one of entries.value.events ?? []) {
          if (!one.run.startsWith('run_')) continue;
          found.push({ group: 'Journal', id: `${one.run}#${one.n}`, icon: 'said', word: `${spaced(one.kind)} ${one.step ?? ''}`, note: `${actor(one.actor)} · ${one.run} #${one.n}`, href: runHref(one.run, `/journal/${one.n}`) });
        }
      }
      give(found);
    });
  }, SERVER_MS);
  return () => clearTimeout(timer);
}
