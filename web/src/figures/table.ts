// Tables as text, for the clipboard and for files.

/** cell makes text safe for a spreadsheet: what it would take for a formula gets an
 * apostrophe before it. Figures stay as they are. */
export function cell(v: string | number | undefined): string {
  if (v === undefined) return "";
  if (typeof v === "number") return Number.isFinite(v) ? String(v) : "";
  return /^[=+\-@\t\r]/.test(v) ? `'${v}` : v;
}

export type Rows = (string | number | undefined)[][];

/** tsv writes rows with tabs between cells; tabs and line ends in text become blanks. */
export function tsv(rows: Rows): string {
  return rows.map((r) => r.map((v) => cell(v).replace(/[\t\r\n]+/g, " ")).join("\t") + "\n").join("");
}

/** csv writes rows as RFC 4180 has them. */
export function csv(rows: Rows): string {
  return rows
    .map(
      (r) =>
        r
          .map((v) => {
            const s = cell(v);
            return /[",\r\n]/.test(s) ? `"${s.replaceAll('"', '""')}"` : s;
          })
          .join(",") + "\r\n",
    )
    .join("");
}

/** download hands text over as a file. */
export function download(name: string, type: string, text: string) {
  const a = document.createElement("a");
  a.href = URL.createObjectURL(new Blob([text], { type }));
  a.download = name;
  a.click();
  setTimeout(() => URL.revokeObjectURL(a.href), 10_000);
}

/** copy puts text on the clipboard and says whether that worked. */
export async function copy(text: string): Promise<boolean> {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    // Files opened from a disk may not use the clipboard directly.
    const area = document.createElement("textarea");
    area.value = text;
    area.style.position = "fixed";
    area.style.opacity = "0";
    document.body.append(area);
    area.select();
    try {
      return document.execCommand("copy");
    } finally {
      area.remove();
    }
  }
}

/** fileName makes a name that every system takes. */
export function fileName(name: string, ending: string): string {
  return `${name.replace(/[^\p{L}\p{N}._-]+/gu, "_").slice(0, 80) || "profile"}${ending}`;
}
