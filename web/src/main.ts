import { mount } from "svelte";
import App from "./App.svelte";
import "./app.css";
import { load } from "./data/load";
import { setDocument } from "./page/state.svelte";
import StudyApp from "./study/StudyApp.svelte";

const target = document.getElementById("app")!;

/** refuse says why there is no page. What the browser says is for those who look
 * closer. */
function refuse(why: string, err: unknown) {
  const main = document.createElement("main");
  main.className = "start";
  for (const [name, text] of [
    ["h1", "This page cannot be shown"],
    ["p", why],
    ["p", `The browser says: ${err instanceof Error ? err.message : String(err)}`],
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
      refuse("Its program failed. This is a defect of opmeter.", err);
      throw err;
    }
  },
  (err: unknown) => refuse("Its data are cut or damaged: was the file copied whole? It can be made anew from the profile.", err),
);
