import { createTool } from "@mastra/core/tools";
import { z } from "zod";

/** What the program on the page imports from the user's project. */
export const tools = {
  read: createTool({
    id: "read",
    description: "Read a file",
    inputSchema: z.object({ path: z.string() }),
    execute: async ({ path }) => `${path}: no such file`,
  }),
};
