#!/usr/bin/env node
// Starts the program of this platform, which npm installed as an optional dependency.
"use strict";

const { spawn } = require("child_process");

const absent = 127; // what shells return where a program cannot be started; 1 is a failed check
const windows = process.platform === "win32";
const platform = `@opmeter/${process.platform}-${process.arch}`;
const file = windows ? "opmeter.exe" : "opmeter";

let program;
try {
  program = require.resolve(`${platform}/bin/${file}`);
} catch {
  console.error(
    `opmeter: package ${platform} is absent: install without --omit=optional; ` +
      "platforms without a package need a build from source",
  );
  process.exit(absent);
}

// The pipe ends with this process, however that ends, and the program then ends, too. Windows
// gives no such pipe to a program that does not use the C library.
const child = windows
  ? spawn(program, process.argv.slice(2), { stdio: "inherit" })
  : spawn(program, process.argv.slice(2), {
      stdio: ["inherit", "inherit", "inherit", "pipe"],
      env: { OPMETER_PARENT: "fd:3", ...process.env },
    });
child.on("error", (error) => {
  console.error(`opmeter: ${program}: ${error.message}`);
  process.exit(absent);
});
// A terminal also signals the program, which takes two signals at once for one. The console of
// Windows always does, and kill() would end the program there without a result.
for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"]) {
  process.on(signal, () => (windows && signal === "SIGINT") || child.kill(signal));
}
child.on("exit", (code, signal) => {
  if (signal) {
    process.removeAllListeners(signal);
    process.kill(process.pid, signal);
  } else {
    process.exit(code);
  }
});
