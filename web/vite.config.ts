import { svelte } from "@sveltejs/vite-plugin-svelte";
import { defineConfig } from "vite";

// One script and one style sheet without names that change, for the Go program to
// put into a page. The page loads nothing else.
export default defineConfig({
  plugins: [
    svelte({
      compilerOptions: {
        // Names of scoped styles stand a thousand times in the page: short ones save
        // 3 % of it. By file, so that builds agree.
        cssHash: ({ hash, filename }) => `s${hash(filename.replace(/^.*[/\\]src[/\\]/, "")).slice(-4)}`,
      },
    }),
  ],
  build: {
    outDir: "../internal/report/page/dist",
    emptyOutDir: true,
    target: "es2022",
    cssTarget: ["chrome123", "firefox120", "safari17.5"],
    cssCodeSplit: false,
    lib: { entry: "src/main.ts", formats: ["iife"], name: "opmeter", fileName: () => "page.js", cssFileName: "page" },
  },
  define: { "process.env.NODE_ENV": JSON.stringify("production") },
});
