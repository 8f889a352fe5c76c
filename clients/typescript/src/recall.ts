import type { MessageFormat } from "./format.js";
import { checkOptions } from "./members.js";
import type { Patience } from "./patience.js";
import type { CallControl, Services } from "./services.js";

/** The result of a recall tool, for the model. */
export interface RecallResult {
  text: string;
  isError: boolean;
}

/** The tools by which a model reads the log of its own session. */
export interface RecallTools<Tool> {
  /** The tools in the form of the provider's request: add them to its tools. */
  readonly schemas: Tool[];
  /** Their names, as the model calls them. */
  readonly names: readonly string[];
  /** Whether a call is one of theirs. */
  has(name: string): boolean;
  /**
   * Runs a model's call. Its arguments are an object, or text that the model wrote. The model's
   * mistakes are reported to it in the result.
   */
  call(name: string, args: unknown, options?: CallControl): Promise<RecallResult>;
}

/** See Session.recallTools. */
export async function recallTools<Message, System, Params, Tool>(
  services: Services,
  patience: Patience,
  sessionId: string,
  format: MessageFormat<Message, System, Params, Tool>,
  options: CallControl & { recallTool?: string } = {},
): Promise<RecallTools<Tool>> {
  const { recallTool, ...control } = checkOptions(options);
  const of = { sessionId, ...(recallTool === undefined ? {} : { recallTool }) };
  const list = () => services.context.listRecallTools({ ...of, format: format.wire }, control);
  const { tools, toolsJson } = await patience.call(list, control.signal);
  const names = tools.map((tool) => tool.name);
  return {
    schemas: toolsJson.length > 0 ? (JSON.parse(new TextDecoder().decode(toolsJson)) as Tool[]) : [],
    names,
    has: (name) => names.includes(name),
    async call(name, args, options) {
      const written = typeof args === "string" ? args : (JSON.stringify(args) ?? "");
      const request = { ...of, name, argumentsJson: new TextEncoder().encode(written) };
      const { text, isError } = await patience.call(() => services.context.callRecallTool(request, options), options?.signal);
      return { text, isError };
    },
  };
}
