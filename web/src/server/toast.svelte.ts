// A short message with an action, such as the undo of a deletion.
import { describe } from "./api.svelte";
import type { Labels } from "./problems";

interface Toast {
  text: string;
  bad?: boolean;
  action?: string;
  act?: () => Promise<unknown>;
}

const now = $state<{ toast?: Toast }>({});
let timer: ReturnType<typeof setTimeout> | undefined;

/** An action stays long enough to be reached by keyboard. */
const shown = 20_000;

export const toast = () => now.toast;

export function dismiss() {
  clearTimeout(timer);
  now.toast = undefined;
}

export function say(t: Toast) {
  dismiss();
  now.toast = t;
  timer = setTimeout(dismiss, shown);
}

/** act calls f and says what went wrong, with the names of fields on the page. */
export async function act(f: () => Promise<unknown>, labels?: Labels): Promise<boolean> {
  try {
    await f();
    if (now.toast?.bad) dismiss();
    return true;
  } catch (err) {
    say({ text: describe(err, labels), bad: true });
    return false;
  }
}
