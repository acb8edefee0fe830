// Content of the current view in the side panel.
import type { Snippet } from "svelte";

export interface Beside {
  /** Title and content of the panel while no layer is selected. */
  title: string;
  instead?: Snippet;
  /** Additional content for the selected layer. */
  also?: Snippet;
  /** Deselects what the title names, where that is possible. */
  close?: () => void;
}

let now = $state.raw<Beside>();

/** beside returns the content of the current view. */
export function beside(): Beside | undefined {
  return now;
}

/** put sets the content; views remove it when they are destroyed. */
export function put(b: Beside | undefined) {
  now = b;
}
