import { mount } from "svelte";
import "../app.css";
import App from "./App.svelte";
import "./server.css";

mount(App, { target: document.getElementById("app")! });
