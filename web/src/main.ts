import { mount } from "svelte";
import App from "./App.svelte";
import "./app.css";
import CompareApp from "./compare/CompareApp.svelte";
import { setComparison } from "./compare/seen.svelte";
import { load } from "./data/load";
import { setDocument } from "./page/state.svelte";
import StudyApp from "./study/StudyApp.svelte";

const target = document.getElementById("app")!;

/** refuse says why the page cannot be shown, with the browser's message as detail. */
function refuse(why: string, err: unknown) {
  const main = document.createElement("main");
  main.className = "start";
  for (const [name, text] of [
    ["h1", "This page cannot be shown"],
    ["p", why],
    ["p", `Browser message: ${err instanceof Error ? err.message : String(err)}`],
  ]) {
    const e = document.createElement(name);
    e.textContent = text;
    main.append(e);
  }
  target.replaceChildren(main);
}

/** drawn marks the time of the first image, for measurements of how fast the page opens. */
function drawn() {
  requestAnimationFrame(() => requestAnimationFrame(() => performance.mark("drawn")));
}

load().then(
  (doc) => {
    try {
      target.replaceChildren();
      if ("comparison" in doc) {
        setComparison(doc);
        mount(CompareApp, { target });
      } else if ("study" in doc) mount(StudyApp, { target, props: { study: doc.study, version: doc.version ?? "" } });
      else {
        setDocument(doc);
        mount(App, { target });
      }
      drawn();
    } catch (err) {
      refuse("The program of the page failed. Please report this as a bug of opmeter.", err);
      throw err;
    }
  },
  (err: unknown) => refuse("The data are truncated or damaged. Was the file copied completely? opmeter report writes it again from the saved profile.", err),
);
