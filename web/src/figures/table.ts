// Tables as text, for the clipboard and for files.

/** cell makes text safe for a spreadsheet: text that looks like a formula gets an
 * apostrophe in front. Figures are unchanged. */
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

/** csv writes rows by RFC 4180. */
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

/** download offers text as a file. */
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
    // A page opened from a file may not have access to the clipboard.
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

/** fileName makes a file name that is valid on every system. */
export function fileName(name: string, ending: string): string {
  return `${name.replace(/[^\p{L}\p{N}._-]+/gu, "_").slice(0, 80) || "profile"}${ending}`;
}
