// What a view has to say in the panel at the side.
import type { Snippet } from "svelte";

export interface Beside {
  /** Head of the panel while no layer is chosen, and what stands below. */
  title: string;
  instead?: Snippet;
  /** Among the facts of the chosen layer. */
  also?: Snippet;
  /** Lets go of what the title names, where that can be done. */
  close?: () => void;
}

let now = $state.raw<Beside>();

/** beside is what the present view has put there. */
export function beside(): Beside | undefined {
  return now;
}

/** put changes it; views take it away when they go. */
export function put(b: Beside | undefined) {
  now = b;
}
