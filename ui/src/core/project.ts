/** The project that the console is in. The address says it; without it, the one that this tab was in before.
 *
 * Every request names it: a link to another project changes the session of the whole browser, and must not move this tab. */
import type { ProjectEntry } from './contract';
import { store } from './store';
import { shell } from './words';

const KEPT = 'handrail.project';
const ID = /^prj_\w+$/;
/** Requests and pages that are about no run: the project in them says which one answers. */
const ASKED = /^\/(home|runs|approvals|library|plans|tools|rules|stats|journal|doctor|settings|about)(?=$|[?/])/;
const PAGES = /^\/$|^\/(runs|approvals|insight)$|^\/(library|plans|tools)(\/|$)|^\/settings\/(doctor|configuration|about)$/;
const OF_A_RUN = /^\/(runs|approvals|journal)\/./;

function before(): string {
  try {
    return sessionStorage.getItem(KEPT) ?? '';
  } catch {
    return ''; // storage is off: the project lives as long as the page
  }
}

export const project = store(before());
/** The projects that the server has open. */
export const opened = store<readonly ProjectEntry[]>([]);

export function enter(id: string | null | undefined): void {
  if (!id || !ID.test(id)) return;
  project.set(id);
  try {
    sessionStorage.setItem(KEPT, id);
  } catch {
    return; // as above
  }
}

enter(new URLSearchParams(location.search).get('project'));

/** Whether a request is about a project, and not about a run or the store. */
export const isOfProject = (path: string): boolean => ASKED.test(path) && !OF_A_RUN.test(path);

/** A request with the project that it is about. */
export function asked(path: string): string {
  if (!project.value || !isOfProject(path) || /[?&]project=/.test(path)) return path;
  return `${path}${path.includes('?') ? '&' : '?'}project=${project.value}`;
}

/** A page with the project that it shows, so that the link works elsewhere; with one project there is nothing to say. */
export function carried(url: URL): URL {
  if (opened.value.length > 1 && project.value && PAGES.test(url.pathname) && !url.searchParams.has('project')) url.searchParams.set('project', project.value);
  return url;
}

/** A command that works from everywhere. */
export function command(words: string): string {
  const folder = opened.value.length > 1 ? opened.value.find((one) => one.id === project.value)?.folder : '';
  return folder ? words.replace(/^handrail(?= )/, `handrail --project ${shell(folder)}`) : words;
}
