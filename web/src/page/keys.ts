// Keys of a page.

/** editing reports whether a key goes into a field. */
export function editing(e: KeyboardEvent): boolean {
  const t = e.target as HTMLElement;
  return t.isContentEditable || t instanceof HTMLSelectElement || t instanceof HTMLTextAreaElement || (t instanceof HTMLInputElement && !["checkbox", "radio", "button"].includes(t.type));
}

/** elsewhere reports whether a key is not for the page: it is used already, or for the browser,
 * a dialog or a field. Escape leaves a field. */
export function elsewhere(e: KeyboardEvent): boolean {
  if (e.defaultPrevented || e.ctrlKey || e.metaKey || e.altKey || document.querySelector("dialog[open]")) return true;
  if (!editing(e)) return false;
  if (e.key === "Escape") (e.target as HTMLElement).blur();
  return true;
}

/** seek moves the focus into the search field of a view, which open shows first if it is
 * absent. */
export async function seek(main: HTMLElement | undefined, open: () => Promise<unknown>) {
  const field = () => main?.querySelector<HTMLInputElement>('input[type="search"]');
  if (!field()) await open();
  field()?.focus();
  field()?.select();
}
