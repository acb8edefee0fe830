// Timeline and memory share their range of time: whoever goes from one to the other
// by the menu finds the range that was left.
import { get, set } from "../page/state.svelte";

let last = { t0: "", t1: "" };

/** leave remembers a range as it stands in the address. */
export function leave(r: { t0: string; t1: string }) {
  last = r;
}

/** resume puts the remembered range into an address without one. */
export function resume() {
  if (get("t0") === "" && last.t0 !== "") set(last);
}
