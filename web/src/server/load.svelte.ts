// Data that a view loads, with what the view shows meanwhile.
import { untrack } from "svelte";
import { connection, describe } from "./api.svelte";

/** A view says that it loads only after this time in milliseconds: most answers are faster. */
const patience = 300;

export class Loaded<T> {
  value = $state.raw<T>();
  error = $state("");
  slow = $state(false);
  private attempt = $state(0);

  /** The source is called again when what it reads before its first await changes. */
  constructor(source: () => Promise<T>) {
    $effect(() => {
      void this.attempt;
      void connection.epoch;
      let current = true;
      const timer = setTimeout(() => (this.slow = true), patience);
      const end = () => {
        clearTimeout(timer);
        this.slow = false;
      };
      source().then(
        (v) => {
          if (!current) return;
          end();
          this.value = v;
          this.error = "";
        },
        (err: unknown) => {
          if (!current) return;
          end();
          this.error = describe(err);
        },
      );
      return () => {
        current = false;
        untrack(end);
      };
    });
  }

  again() {
    this.attempt++;
  }
}
