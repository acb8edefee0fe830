// Writes src/data/profile.ts: the types of docs/profile.schema.json, so that page
// and program cannot come to differ. Other files may be named: schema, then types.
import { readFileSync, writeFileSync } from "node:fs";

const [from, to] = process.argv.slice(2);
const schema = JSON.parse(readFileSync(from ?? new URL("../../docs/profile.schema.json", import.meta.url), "utf8"));

function type(s) {
  // Lists that may be stored next to the JSON text as binary.
  if (s.column) return "Column";
  if (s.$ref) return s.$ref.replace("#/$defs/", "");
  if (s.const !== undefined) return JSON.stringify(s.const);
  if (s.enum) return s.enum.map((v) => JSON.stringify(v)).join(" | ");
  if (s.type === "array") {
    if (s.minItems && s.minItems === s.maxItems) return `[${Array(s.minItems).fill(type(s.items)).join(", ")}]`;
    const t = type(s.items);
    return t.includes(" ") ? `(${t})[]` : `${t}[]`;
  }
  if (s.type === "object" && s.properties && s.additionalProperties) {
    const named = Object.entries(s.properties).map(([key, v]) => `${comment(v.description, "    ")}    ${key}?: ${type(v)};\n`);
    return `{\n${named.join("")}    [key: string]: ${type(s.additionalProperties)} | undefined;\n  }`;
  }
  if (s.type === "object" && s.additionalProperties) return `Record<string, ${type(s.additionalProperties)}>`;
  return { integer: "number", number: "number", string: "string", boolean: "boolean" }[s.type] ?? "unknown";
}

function comment(text, indent) {
  if (!text) return "";
  return `${indent}/** ${text.replaceAll("*/", "* /").replace(/\s+/g, " ").trim()} */\n`;
}

function object(name, s) {
  const required = new Set(s.required ?? []);
  const fields = Object.entries(s.properties ?? {}).map(([key, v]) => {
    return `${comment(v.description, "  ")}  ${key}${required.has(key) ? "" : "?"}: ${type(v)};\n`;
  });
  return `${comment(s.description, "")}export interface ${name} {\n${fields.join("")}}\n`;
}

const parts = [
  "// Generated from docs/profile.schema.json by scripts/types.mjs.\n",
  "/** A column of figures. */\nexport type Column = Float64Array | Float32Array | Int32Array;\n",
  object("Profile", schema),
  ...Object.entries(schema.$defs).map(([name, s]) => object(name, s)),
];
writeFileSync(to ?? new URL("../src/data/profile.ts", import.meta.url), parts.join("\n"));
