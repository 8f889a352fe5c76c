import { durationMs } from "@bufbuild/protobuf/wkt";
import { Code, ConnectError } from "@connectrpc/connect";
import { BudgetExceededSchema, type IrreduciblePart } from "./gen/contextd/v1/assembly_pb.js";
import { BadRequestSchema, ErrorInfoSchema, RetryInfoSchema } from "./gen/google/rpc/error_details_pb.js";

/** What an error of the API says; docs/api-errors.md lists the reasons. */
export interface Details {
  code: string;
  reason: string;
  metadata: Record<string, string>;
  /** The first field at fault; empty where none is named. */
  field: string;
  /** Undefined where waiting does not help. */
  retryMs: number | undefined;
  parts: IrreduciblePart[];
}

/** Reads the details of what a call threw. */
export function detailsOf(err: unknown): Details {
  const status = ConnectError.from(err);
  const info = status.findDetails(ErrorInfoSchema)[0];
  const retry = status.findDetails(RetryInfoSchema)[0]?.retryDelay;
  return {
    code: codeName(status.code),
    reason: info?.reason ?? "",
    metadata: info?.metadata ?? {},
    field: status.findDetails(BadRequestSchema)[0]?.fieldViolations[0]?.field ?? "",
    retryMs: retry && durationMs(retry),
    parts: status.findDetails(BudgetExceededSchema)[0]?.parts ?? [],
  };
}

/** gRPC's name of a status: FailedPrecondition becomes FAILED_PRECONDITION. */
function codeName(code: Code): string {
  if (code === Code.Canceled) return "CANCELLED";
  return Code[code].replace(/(?<=[a-z])(?=[A-Z])/g, "_").toUpperCase();
}

/**
 * Calls again where the daemon says how long to wait, three times at most. A call that
 * appends can be repeated because its events have ids.
 */
export async function patiently<T>(call: () => Promise<T>): Promise<T> {
  for (let left = 3; ; left--) {
    try {
      return await call();
    } catch (err) {
      const { retryMs } = detailsOf(err);
      if (retryMs === undefined || left === 0) throw err;
      await new Promise((resolve) => setTimeout(resolve, retryMs));
    }
  }
}
