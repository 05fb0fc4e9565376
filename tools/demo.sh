#!/bin/sh
# The main job of mam, for real: jobs are registered, workers claim and finish them, one worker is killed in the middle
# and its job is taken over. No service, no daemon: the store is a directory, the workers are shell loops.
set -eu
folder=$(mktemp -d "${TMPDIR:-/tmp}/mam-demo.XXXXXX")
trap 'rm -rf "$folder"' EXIT
cd "$folder"
unset MAM_STORE MAM_JOB_ID MAM_ATTEMPT DELEGATE_JOB_LOGS_DIR 2>/dev/null || true
export MAM_CONFIG="$folder/config.toml"
: >"$MAM_CONFIG"

bold='' dim='' plain=''
if [ -t 1 ]; then bold=$(printf '\033[1m') dim=$(printf '\033[2m') plain=$(printf '\033[0m'); fi
say() { printf '\n%s%s%s\n' "$bold" "$*" "$plain"; }
show() { printf '%s$ %s%s\n' "$dim" "$*" "$plain"; "$@"; }

# One worker: claim, work, complete, until there is nothing left. The attempt it was given is its fence.
worker() {
    while claim=$(mam pick --agent-session demo --owner "$1" --wait 4 --export 2>/dev/null); do
        (
            export $claim
            printf '  %s works on %.8s (attempt %s)\n' "$1" "$MAM_JOB_ID" "$MAM_ATTEMPT"
            mam complete --result "done by $1"
        ) >>"$folder/workers.log" 2>&1
    done
}

say "1. Register six jobs. Each gets an id; the prompt, the label and the rest are one readable file."
for subject in sorting searching graphs strings trees heaps; do
    mam register "Write ten exercises about $subject" --agent shell --agent-session demo
done

say "2. A worker claims one with a lease of two seconds, and is killed before it finishes."
# The first word it writes is the id, so that the demo knows whom to watch.
mkfifo claimed
(mam pick --agent-session demo --owner doomed --lease 2 >claimed; exec sleep 600) &
doomed=$!
read -r lost <claimed
kill -9 "$doomed"
wait "$doomed" 2>/dev/null || true
printf 'killed the worker that held %.8s\n' "$lost"
show mam explain "$lost"

say "3. Two other workers finish everything, the lost job too: its lease runs out, and the next claim takes it over."
worker anna & first=$!
worker ben & second=$!
show mam wait --agent-session demo --timeout 60
wait "$first" "$second"
cat workers.log

say "4. What became of them."
show mam list

say "5. The timeline of the job whose worker was killed."
show mam logs "$lost"

say "6. A late word from the dead worker's attempt is refused: exit 4, nothing changed."
printf '%s$ mam complete %.8s --attempt 1%s\n' "$dim" "$lost" "$plain"
mam complete "$lost" --attempt 1 && exit 1 || code=$?
echo "exit $code"
[ "$code" -eq 4 ]
