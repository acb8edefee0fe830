import { fileURLToPath } from "node:url";
import { defineConfig, mergeConfig } from "vite";
import page from "./vite.config";

// The page of opmeter serve: like the page of a profile, but with a start file.
export default mergeConfig(
  page,
  defineConfig({
    publicDir: fileURLToPath(new URL("src/server/public", import.meta.url)),
    build: {
      outDir: "../internal/server/front",
      lib: { entry: "src/server/main.ts", formats: ["iife"], name: "opmeter", fileName: () => "server.js", cssFileName: "server" },
    },
  }),
);
