// Clients of the API, which the daemon serves next to the page.
import { Code, ConnectError, createClient, type Interceptor } from "@connectrpc/connect";
import { createConnectTransport } from "@connectrpc/connect-web";
import { CompactionService } from "./gen/contextd/v1/compaction_service_pb";
import { ContextService } from "./gen/contextd/v1/context_service_pb";

const stored = "contextd.token";

// A token in the address is valid for as long as the command that printed it runs, and is for all pages of
// it, so it is stored for all tabs. A token that was typed in is stored for its tab only.
export function takeToken() {
  const token = new URLSearchParams(location.hash.slice(1)).get("token");
  if (token === null) return;
  localStorage.setItem(stored, token);
  history.replaceState(null, "", location.pathname + location.search);
}

export function setToken(token: string) {
  localStorage.removeItem(stored);
  sessionStorage.setItem(stored, token);
}

const bearer: Interceptor = (next) => (req) => {
  const token = sessionStorage.getItem(stored) ?? localStorage.getItem(stored);
  if (token !== null) req.header.set("Authorization", "Bearer " + token);
  return next(req);
};

const transport = createConnectTransport({ baseUrl: location.origin, useBinaryFormat: true, interceptors: [bearer] });

export const contexts = createClient(ContextService, transport);
export const compactions = createClient(CompactionService, transport);

// Refusal explains in a sentence why something cannot be shown.
export type Refusal = {
  sentence: string;
  needsToken: boolean;
  // passing says that a later request may succeed.
  passing: boolean;
};

export function refusal(error: unknown): Refusal {
  const e = ConnectError.from(error);
  const said = ended(e.rawMessage);
  const refused = (sentence: string) => ({ sentence, needsToken: false, passing: false });
  switch (e.code) {
    case Code.Unauthenticated:
      return {
        sentence: "These sessions are shown to holders of a token only" + (e.rawMessage.startsWith("HTTP") ? "." : ": " + said),
        needsToken: true,
        passing: false,
      };
    case Code.Unimplemented:
      return refused("The daemon is older than this page and cannot answer: " + said);
    case Code.Unknown:
    case Code.Unavailable:
      return { sentence: "The daemon does not answer: " + said, needsToken: false, passing: true };
    default:
      return refused(said.charAt(0).toUpperCase() + said.slice(1));
  }
}

function ended(sentence: string): string {
  return /[.!?]$/.test(sentence) ? sentence : sentence + ".";
}

export function cancelled(error: unknown): boolean {
  return ConnectError.from(error).code === Code.Canceled;
}
