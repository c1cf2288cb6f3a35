/** A part that is loaded when it is first needed, or before that when the browser has nothing else to do. */
import type { ComponentType, JSX } from 'preact';
import { useEffect, useState } from 'preact/hooks';
import { Bones, Button, Empty } from './kit';

export interface LatePart<P> {
  (props: P): JSX.Element;
  /** Load it now, without showing it. */
  fetch: () => void;
}

export function late<P extends object>(load: () => Promise<ComponentType<P>>, rows = 6): LatePart<P> {
  let known: ComponentType<P> | undefined;
  const get = async (): Promise<void> => {
    known ??= await load();
  };
  function Late(props: P): JSX.Element {
    const [state, setState] = useState<'' | 'here' | 'failed'>('');
    useEffect(() => {
      if (known) return;
      get().then(
        () => setState('here'),
        () => setState('failed'),
      );
    }, []);
    const Known = known;
    if (Known) return <Known {...props} />;
    if (state !== 'failed') return <Bones rows={rows} />;
    return (
      <Empty icon="warning" title="This part could not be loaded" actions={<Button onClick={() => location.reload()}>Reload</Button>}>
        handrail may have been updated while the page was open.
      </Empty>
    );
  }
  return Object.assign(Late, { fetch: () => void get().catch(() => undefined) });
}

/** Load parts once the page is quiet, so that opening them takes no time. */
export function fetchSoon(parts: readonly { fetch: () => void }[]): void {
  const start = (): void => parts.forEach((part) => part.fetch());
  if ('requestIdleCallback' in window) requestIdleCallback(start, { timeout: 2_000 });
  else setTimeout(start, 500);
}
