#!/usr/bin/env node
// Starts the program of this platform, which npm installed as an optional dependency.
"use strict";

const { spawn } = require("child_process");

const platform = `@opmeter/${process.platform}-${process.arch}`;
const file = process.platform === "win32" ? "opmeter.exe" : "opmeter";

let program;
try {
  program = require.resolve(`${platform}/bin/${file}`);
} catch {
  console.error(
    `opmeter: package ${platform} is absent: install without --omit=optional; ` +
      "platforms without a package need a build from source",
  );
  process.exit(1);
}

const child = spawn(program, process.argv.slice(2), { stdio: "inherit" });
// Ctrl-C reaches the program by itself; this process waits for its end.
process.on("SIGINT", () => {});
for (const signal of ["SIGTERM", "SIGHUP"]) {
  process.on(signal, () => child.kill(signal));
}
child.on("error", (error) => {
  console.error(`opmeter: ${program}: ${error.message}`);
  process.exit(1);
});
child.on("exit", (code, signal) => {
  if (signal) {
    process.removeAllListeners(signal);
    process.kill(process.pid, signal);
  } else {
    process.exit(code);
  }
});
