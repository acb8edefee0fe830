import { mount } from "svelte";
import App from "./App.svelte";
import "./app.css";
import { load } from "./lib/data";
import { setDocument } from "./lib/state.svelte";

const target = document.getElementById("app")!;

load()
  .then((doc) => {
    setDocument(doc);
    target.replaceChildren();
    mount(App, { target });
  })
  .catch((err: unknown) => {
    target.textContent = `This page cannot be shown: ${err instanceof Error ? err.message : String(err)}`;
  });
