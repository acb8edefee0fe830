import { mount } from "svelte";
import App from "./App.svelte";
import "./app.css";
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

load().then(
  (doc) => {
    try {
      if ("study" in doc) {
        target.replaceChildren();
        mount(StudyApp, { target, props: { study: doc.study, version: doc.version ?? "" } });
        return;
      }
      setDocument(doc);
      target.replaceChildren();
      mount(App, { target });
    } catch (err) {
      refuse("The program of the page failed. Please report this as a bug of opmeter.", err);
      throw err;
    }
  },
  (err: unknown) => refuse("The data are truncated or damaged. Was the file copied completely? opmeter report writes it again from the saved profile.", err),
);
