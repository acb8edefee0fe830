import { expect, test } from "vitest";
import { glossary } from "../glossary";
import facts from "./facts.ts?raw";
import { terms } from "./terms";

test("every explained label is one of the cards, and its term is in the glossary", () => {
  for (const [label, term] of Object.entries(terms)) {
    expect(facts, label).toContain(`"${label}"`);
    expect(glossary[term!], label).toMatch(/^[A-Z].*\.$/);
  }
});
