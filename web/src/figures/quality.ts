// The quality of a measurement in a few words, and what improves it.
import type { Doubt, Trust } from "../data/profile";
import { doubt } from "./trust";

type Code = Doubt["code"];

/** Reasons that explain a spread, a shift or a wide interval, in the order in which they
 * are named, with what to do about them. */
const causes: [code: Code, word: string, advice: string][] = [
  ["threads", "more threads than CPUs", "use fewer --threads than the computer has CPUs"],
  ["quota", "CPU quota reached", "raise the CPU quota of the container"],
  ["throttled", "CPU throttled by heat", "let the computer cool down and repeat"],
  ["waiting", "machine busy", "close other programs and repeat with --time 10s"],
  ["stolen", "machine busy (hypervisor)", "repeat on a machine of your own, or with --time 10s"],
  ["busy", "machine busy", "close other programs and repeat with --time 10s"],
  ["speed", "CPU speed changed", "fix the CPU frequency, or repeat with --time 10s"],
  ["battery", "running on battery", "plug in the power supply and repeat"],
  ["collector", "garbage collector ran", "repeat with --time 10s"],
];

/** Reasons that have a cause among the others. */
const symptoms: Code[] = ["interval", "spread", "step", "drift", "two_modes", "reconcile"];

/** Reasons that measuring longer does not remove. */
const lasting: Code[] = ["incomplete", "lost", "not_pinned", "instruments"];

/** reason returns the main reason of a verdict in a few words, and what to do about it.
 * Where the gravest reason is a symptom, its cause is named. */
export function reason(t: Trust): { why: string; advice: string } {
  const first = t.doubts?.[0];
  if (t.verdict === "good" || !first) return { why: "", advice: "" };
  const symptom = symptoms.includes(first.code);
  for (const [code, why, advice] of causes) {
    if (t.doubts!.some((d) => d.code === code && (symptom || d === first))) return { why, advice };
  }
  return { why: doubt(first), advice: lasting.includes(first.code) ? "" : "measure longer: --time 10s" };
}
