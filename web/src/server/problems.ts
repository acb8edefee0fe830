// Errors of the API in words of the page.
import { Refused } from "./upload";

interface ProblemBody {
  detail?: string;
  title?: string;
  errors?: { message?: string; location?: string }[];
}

/** Names of fields of a form by those of the API. */
export type Labels = Record<string, string>;

/** Problem is an error that the server describes. */
export class Problem extends Refused {
  constructor(
    readonly status: number,
    private readonly body: ProblemBody,
  ) {
    super(body.detail ?? body.title ?? `The server answers with status ${status}.`);
  }

  /** text names the fields that are wrong as the form does. */
  text(labels: Labels = {}): string {
    const fields = (this.body.errors ?? []).map((e) => {
      const name = e.location?.replace(/^body\.?/, "") ?? "";
      return [labels[name] ?? name, e.message].filter(Boolean).join(": ");
    });
    // Where the fields are named, that the request is wrong says no more.
    return (fields.length > 0 && this.status === 422 ? fields : [this.message, ...fields]).join("\n");
  }
}

/** reason reads why a request was refused. */
export function reason(status: number, text: string): Problem {
  let body: unknown;
  try {
    body = JSON.parse(text);
  } catch {
    // A proxy may answer with anything.
  }
  return new Problem(status, body !== null && typeof body === "object" ? (body as ProblemBody) : {});
}
