// Reports what happens in one session of OpenCode to `mam hook opencode`, in the format of the other agents' hooks.
// mam puts the lines `const command`, `briefs` and `verbs` before this file, and names the file in the environment of
// that session only.
import { spawn } from "node:child_process"

const QUESTION = "AskUserQuestion"
const [INTERRUPTED, DENIED] = ["interrupted", "permission_denied"]
const PATIENCE_MS = 120_000 // a longer wait for the vendor is a usage limit, which mam handles
const children = new Set() // conversations of subagents, whose ends do not end the turn
let turn = "" // the name of the latest prompt
let open = false // whether its end is still to be reported: OpenCode may report idle twice
let complete = false // whether the model completed its answer
let text // the text of that answer
let failure = ""
let steps = new Map() // what each answer of the model took, by its id; those of subagents too
let queue = Promise.resolve()

// Hooks run one after the other, so that they arrive in order. The agent does not wait for them.
function report(hook_event_name, fields = {}) {
  const line = JSON.stringify({ hook_event_name, turn_id: turn, ...fields })
  queue = queue.then(() => runHook(line)).catch(() => {})
}

function runHook(line) {
  return new Promise((done) => {
    const child = spawn(command[0], [...command.slice(1), "hook", "opencode"], { stdio: ["pipe", "ignore", "ignore"] })
    child.on("error", done)
    child.on("close", done)
    child.stdin.on("error", () => {})
    child.stdin.end(line)
  })
}

// Like the hooks of other agents, this reports no interrupted turn: only a person knows whether its job is done.
function endTurn() {
  const last = { last_assistant_message: text, usage: spent() }
  if (open && complete && !failure) report("Stop", last)
  else if (open && failure && failure !== INTERRUPTED) report("StopFailure", { error: failure, ...last })
  open = false
}

function spent() {
  const sum = { input: 0, cached: 0, output: 0, cost: 0 }
  for (const { tokens, cost } of steps.values()) {
    sum.input += (tokens?.input || 0) + (tokens?.cache?.write || 0)
    sum.cached += tokens?.cache?.read || 0
    sum.output += tokens?.output || 0
    sum.cost += cost || 0
  }
  return steps.size ? sum : undefined
}

// The name that other agents use for a vendor's error.
function errorName(error) {
  const status = error?.data?.statusCode
  if (error?.name === "MessageAbortedError") return INTERRUPTED
  if (error?.name === "ProviderAuthError" || status === 401 || status === 403) return "authentication_failed"
  if (status === 429) return "rate_limit"
  if (status >= 500) return "overloaded"
  return "unknown"
}

// Adds patterns to the user's rules; other patterns keep the user's rule or OpenCode's default.
function withAllowed(rules, patterns) {
  const own = typeof rules === "string" ? { "*": rules } : { ...rules }
  for (const pattern of patterns) own[pattern] = "allow"
  return own
}

function allowReports(config) {
  const rights = typeof config.permission === "string" ? { "*": config.permission } : { ...config.permission }
  rights.external_directory = withAllowed(rights.external_directory, [`${briefs}/*`])
  if (rights.bash || rights["*"]) rights.bash = withAllowed(rights.bash, verbs.map((verb) => `mam ${verb} *`))
  config.permission = rights
}

const handlers = {
  "session.created": ({ info }) => info?.parentID && children.add(info.id),
  "permission.asked": (asked) => report("PermissionRequest", { tool_name: asked.permission }),
  "permission.replied": ({ reply }) => (reply === "reject" ? (failure = DENIED) : report("PreToolUse")),
  "question.asked": () => report("PreToolUse", { tool_name: QUESTION }),
  "question.replied": () => report("PostToolUse", { tool_name: QUESTION }),
  "question.rejected": () => report("PostToolUse", { tool_name: QUESTION }),
  "message.part.updated": ({ part }) => {
    if (part?.type === "step-finish") steps.set(part.id, part)
    if (children.has(part?.sessionID)) return
    if (part?.type === "text" && part.time?.end) text = part.text
    if (part?.type === "step-finish" && part.reason !== "tool-calls") complete = true
  },
  "session.error": ({ sessionID, error }) => {
    if (!children.has(sessionID)) failure = errorName(error)
    if (failure && !text && error?.data?.message) text = error.data.message
  },
  "session.status": ({ sessionID, status }) => {
    if (status?.type !== "retry" || children.has(sessionID) || !(status.next - Date.now() > PATIENCE_MS)) return
    report("StopFailure", { error: "rate_limit", last_assistant_message: status.message })
  },
  "session.idle": ({ sessionID }) => children.has(sessionID) || endTurn(),
}

export const Mam = async () => {
  report("SessionStart", { source: "startup" })
  return {
    config: async (config) => allowReports(config),
    event: async ({ event }) => handlers[event.type]?.(event.properties),
    "chat.message": async (_about, { message, parts }) => {
      if (children.has(message.sessionID)) return
      turn = message.id
      open = true
      complete = false
      text = undefined
      failure = ""
      steps = new Map()
      const prompt = parts.map((part) => (part.type === "text" ? part.text : "")).join("\n")
      report("UserPromptSubmit", { prompt })
    },
    "tool.execute.before": async ({ tool }) => report("PreToolUse", { tool_name: tool }),
    "tool.execute.after": async ({ tool }) => report("PostToolUse", { tool_name: tool }),
  }
}
