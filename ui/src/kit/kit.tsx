/** The small parts that every page is made of. */
import { Component, type ComponentChildren, type JSX } from 'preact';
import { useEffect, useLayoutEffect, useRef, useState } from 'preact/hooks';
import { command as inProject } from '../core/project';
import { store, useStore } from '../core/store';
import { exact, when } from '../core/words';
import type { Look } from '../states';
import { Icon, type IconName } from './icons';
import { useNow } from './now';

interface ButtonProps {
  children?: ComponentChildren;
  kind?: 'plain' | 'primary' | 'danger' | 'undo' | 'quiet';
  small?: boolean;
  href?: string;
  icon?: IconName;
  kbd?: string;
  label?: string;
  disabled?: boolean;
  type?: 'button' | 'submit';
  download?: boolean;
  class?: string;
  onClick?: (event: MouseEvent) => void;
}

/** A control is a button, a place is a link. */
export function Button(props: ButtonProps): JSX.Element {
  const { children, kind = 'plain', small, href, icon, kbd, label, disabled, type = 'button', download, onClick } = props;
  const only = !children && icon ? ' icon-only' : '';
  const names = `btn ${kind}${small ? ' small' : ''}${only}${props.class ? ` ${props.class}` : ''}`;
  const inner = (
    <>
      {icon ? <Icon name={icon} size={14} /> : null}
      {children}
      {kbd ? <kbd aria-hidden>{kbd}</kbd> : null}
    </>
  );
  if (href && !disabled) {
    return (
      <a class={names} href={href} aria-label={label} title={only ? label : undefined} download={download} onClick={onClick}>
        {inner}
      </a>
    );
  }
  return (
    <button class={names} type={type} aria-label={label} title={only ? label : undefined} disabled={disabled} onClick={onClick}>
      {inner}
    </button>
  );
}

export const Kbd = ({ children }: { children: string }): JSX.Element => <kbd>{children}</kbd>;

export function Pill({ look, note }: { look: Look; note?: string }): JSX.Element {
  return (
    <span class={`pill c-${look.tone} t-${look.tone}`}>
      <Icon name={look.icon} size={14} />
      {note ?? look.word}
    </span>
  );
}

export const StateIcon = ({ look, named, size = 16 }: { look: Look; named?: boolean; size?: number }): JSX.Element => (
  <Icon name={look.icon} tone={look.tone} size={size} label={named ? look.word : undefined} />
);

/** Relative under 12 hours; the exact time on hover. */
export function Time({ at }: { at: string | undefined }): JSX.Element {
  const now = useNow();
  if (!at) return <span>–</span>;
  return (
    <time dateTime={at} title={exact(at)}>
      {when(at, now)}
    </time>
  );
}

export async function copyText(text: string, said = 'Copied'): Promise<void> {
  try {
    await navigator.clipboard.writeText(text);
    toast({ text: said });
  } catch {
    toast({ text: 'The browser did not allow copying. Select the text and copy it.', bad: true });
  }
}

export function Copy({ text, label = 'Copy' }: { text: string; label?: string }): JSX.Element {
  return <Button kind="quiet" small icon="copy" label={label} onClick={() => void copyText(text)} />;
}

/** The same thing as a command, to copy. */
export function Twin({ command: words, label = 'Copy command' }: { command: string; label?: string }): JSX.Element {
  const command = inProject(words);
  return (
    <div class="twin">
      <code title={command}>{command}</code>
      <Copy text={command} label={label} />
    </div>
  );
}

export interface EmptyProps {
  icon?: IconName;
  tone?: string;
  title: string;
  children?: ComponentChildren;
  actions?: ComponentChildren;
  /** It is all that the page has: its title is the page's. */
  whole?: boolean;
}

export function Empty({ icon = 'search', tone = '3', title, children, actions, whole }: EmptyProps): JSX.Element {
  return (
    <div class="empty">
      <Icon name={icon} size={24} tone={tone} />
      {whole ? <h1>{title}</h1> : <h2>{title}</h2>}
      {children ? <p>{children}</p> : null}
      {actions ? <div class="row">{actions}</div> : null}
    </div>
  );
}

/** Nothing for 150 ms, then grey bars of the rows' heights; after 3 s a sentence. */
export function Bones({ rows = 6, what = '' }: { rows?: number; what?: string }): JSX.Element | null {
  const [stage, setStage] = useState(0);
  useEffect(() => {
    const soon = setTimeout(() => setStage(1), 150);
    const late = setTimeout(() => setStage(2), 3_000);
    return () => {
      clearTimeout(soon);
      clearTimeout(late);
    };
  }, []);
  if (!stage) return null;
  return (
    <div class="bones" role="status">
      <span class={stage < 2 ? 'sr' : 'meta'}>{stage < 2 ? 'Loading' : `Still loading${what ? `: ${what}` : ''}`}</span>
      {Array.from({ length: rows }, (_, index) => (
        <div key={index} aria-hidden>
          <i style={{ width: '16px' }} />
          <i style={{ width: `${26 + ((index * 37) % 34)}%` }} />
          <i style={{ width: '60px', marginLeft: 'auto' }} />
        </div>
      ))}
    </div>
  );
}

interface Toast {
  text: ComponentChildren;
  bad?: boolean;
  href?: string;
  link?: string;
}

const toasts = store<readonly (Toast & { id: number })[]>([]);
let counted = 0;

/** Say something in the corner. An error stays until it is dismissed. */
export function toast(one: Toast): void {
  const id = ++counted;
  toasts.set([...toasts.value.slice(-3), { ...one, id }]);
  if (!one.bad) setTimeout(() => dismiss(id), 5_000);
}
const dismiss = (id: number): void => toasts.set(toasts.value.filter((one) => one.id !== id));

export function Toasts(): JSX.Element {
  const shown = useStore(toasts);
  return (
    <div class="toasts" role="region" aria-label="Messages" aria-live="polite">
      {shown.map((one) => (
        <div class="toast" key={one.id}>
          <Icon name={one.bad ? 'failed' : 'completed'} tone={one.bad ? 'bad' : 'ok'} />
          <div class="grow">
            {one.text}{' '}
            {one.href ? (
              <a class="link" href={one.href}>
                {one.link ?? 'See it'}
              </a>
            ) : null}
          </div>
          <Button kind="quiet" small icon="close" label="Dismiss" onClick={() => dismiss(one.id)} />
        </div>
      ))}
    </div>
  );
}

/** A dialog of the browser's own: it keeps the focus inside and gives it back. */
export function Dialog(props: { label: string; onClose: () => void; children: ComponentChildren; wide?: boolean }): JSX.Element {
  const element = useRef<HTMLDialogElement>(null);
  // Before anything else can be typed: keys that come now are for the dialog.
  useLayoutEffect(() => {
    const dialog = element.current!;
    const opener = document.activeElement as HTMLElement | null;
    dialog.showModal();
    return () => {
      if (dialog.open) dialog.close();
      opener?.focus?.();
    };
  }, []);
  return (
    <dialog
      ref={element}
      aria-label={props.label}
      onCancel={(event) => {
        event.preventDefault();
        props.onClose();
      }}
      onClick={(event) => event.target === element.current && props.onClose()}
    >
      {props.children}
    </dialog>
  );
}

/** One part that breaks must not take the page with it. */
export class Part extends Component<{ children: ComponentChildren; name?: string }, { error: Error | null }> {
  override state = { error: null as Error | null };
  static getDerivedStateFromError(error: Error): { error: Error } {
    return { error };
  }
  override render(): ComponentChildren {
    const { error } = this.state;
    if (!error) return this.props.children;
    return (
      <Empty
        icon="warning"
        tone="wait"
        title="This part could not be shown"
        actions={
          <>
            <Button onClick={() => this.setState({ error: null })}>Reload this part</Button>
            <Button onClick={() => void copyText(`${error.message}\n${error.stack ?? ''}\n${location.pathname}`)}>Copy details</Button>
          </>
        }
      >
        The rest works.
      </Empty>
    );
  }
}

export function Menu({ label, children, icon = 'more' }: { label: string; children: ComponentChildren; icon?: IconName }): JSX.Element {
  const [open, setOpen] = useState(false);
  const root = useRef<HTMLDivElement>(null);
  useEffect(() => {
    if (!open) return;
    const close = (event: Event): void => {
      if (!root.current?.contains(event.target as Node)) setOpen(false);
    };
    document.addEventListener('pointerdown', close);
    return () => document.removeEventListener('pointerdown', close);
  }, [open]);
  return (
    <div
      class="menu"
      ref={root}
      onKeyDown={(event) => {
        if (event.key !== 'Escape' || !open) return;
        event.stopPropagation();
        setOpen(false);
        root.current?.querySelector('button')?.focus();
      }}
    >
      <button class="btn icon-only" type="button" aria-label={label} aria-expanded={open} onClick={() => setOpen(!open)}>
        <Icon name={icon} size={14} />
      </button>
      {open ? <ul onClick={() => setOpen(false)}>{children}</ul> : null}
    </div>
  );
}

export function Bar({ parts, label }: { parts: readonly { tone: string; share: number }[]; label: string }): JSX.Element {
  return (
    <div class="bar" role="img" aria-label={label}>
      {parts.map((part) => (part.share > 0 ? <i key={part.tone} class={`f-${part.tone}`} style={{ width: `${part.share * 100}%` }} /> : null))}
    </div>
  );
}

export function Find(props: { value: string; label: string; onInput: (text: string) => void; id?: string }): JSX.Element {
  return (
    <div class="search">
      <Icon name="search" />
      <input
        type="search"
        id={props.id ?? 'find'}
        aria-label={props.label}
        placeholder={props.label}
        value={props.value}
        onInput={(event) => props.onInput(event.currentTarget.value)}
      />
      <kbd aria-hidden>/</kbd>
    </div>
  );
}
