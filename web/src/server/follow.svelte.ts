// Follows a job by the events of the server.
import { call, connection, describe } from "./api.svelte";
import { ended } from "./jobs";
import type { Job } from "./types";

const retry = 2000;

export class Followed {
  job = $state.raw<Job>();
  error = $state("");
  /** The connection broke; the job goes on without it. */
  broken = $state(false);

  constructor(id: () => string) {
    $effect(() => {
      void connection.epoch;
      const of = id();
      let events: EventSource | undefined;
      let timer: ReturnType<typeof setTimeout> | undefined;
      let over = false;
      const take = (j: Job) => {
        if (over) return;
        this.broken = false;
        this.error = "";
        this.job = j;
        if (ended(j)) events?.close();
      };
      const open = () => {
        events = new EventSource(`/api/v1/jobs/${of}/events`);
        events.addEventListener("state", (e) => take(JSON.parse((e as MessageEvent<string>).data) as Job));
        events.addEventListener("absent", () => events?.close());
        events.onopen = () => (this.broken = false);
        events.onerror = () => {
          if (over || (this.job && ended(this.job))) return;
          this.broken = true;
          if (events?.readyState !== EventSource.CLOSED) return;
          timer = setTimeout(open, retry);
        };
      };
      // The state first: it comes at once, or an error says why it is absent.
      call<Job>("GET", `/jobs/${of}`).then(
        (j) => {
          take(j);
          if (!over && !ended(j)) open();
        },
        (err: unknown) => {
          if (!over) this.error = describe(err);
        },
      );
      return () => {
        over = true;
        events?.close();
        clearTimeout(timer);
      };
    });
  }
}
