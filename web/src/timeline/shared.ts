// Timeline and memory share their range of time, also when the view changes by the menu.
import { get, set } from "../page/state.svelte";

let last = { t0: "", t1: "" };

/** leave stores a range in the form of the address. */
export function leave(r: { t0: string; t1: string }) {
  last = r;
}

/** resume puts the stored range into an address without one. */
export function resume() {
  if (get("t0") === "" && last.t0 !== "") set(last);
}
