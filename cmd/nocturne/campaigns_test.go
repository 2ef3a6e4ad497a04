package main

import (
	"fmt"
	"strings"
)

// bowl is a command campaign that takes milliseconds a trial and has its best
// at --a 3 --b fast: 100 there, 60 at the defaults. --a 4 cannot be run.
func (w *world) bowl(change ...string) string {
	w.t.Helper()
	w.write("measure.sh", `
a=1 b=slow
while [ $# -gt 0 ]; do
  case $1 in
  --a) a=$2 ;;
  --b) b=$2 ;;
  esac
  shift 2
done
value=60
case $a in
2) value=72 ;;
3) value=85 ;;
4) echo "out of luck: a is $a" >&2; exit 2 ;;
esac
if [ "$b" = fast ]; then value=$((value + 15)); fi
echo "{\"score\": $value}"
`)
	text := fmt.Sprintf(`
campaign: bowl
server:
  kind: command
  command: [sh, measure.sh]
  env: {%s: "%s"}
workload: {rounds: 1}
objective: {maximize: score}
space:
  flags:
    --a: {int: [1, 4], default: 1}
    --b: {choices: [slow, fast], default: slow}
    --c: {choices: [p, q, r], default: p}
seed: 7
budget: {trials: 12}
`, worldVariable, w.folder)
	return w.write("bowl.yaml", strings.NewReplacer(change...).Replace(text))
}

// simulated is a campaign on the simulated server in which "fast" is almost
// twice as fast as the baseline, far beyond what a loaded machine adds in noise.
func (w *world) simulated(change ...string) string {
	w.t.Helper()
	text := fmt.Sprintf(`
campaign: simulated
model: simulated model
server:
  kind: sglang
  command:
    - ${nocturne}
    - sim
    - --model-path=/models/simulated
    - --tp=8
    - --port=${port}
    - --enable-metrics
    - --sim-workers=2
    - --sim-load-time=15m
    - --sim-load-scale=9000
    - --sim-serving-scale=20
    - --sim-launch-noise=0
    - --sim-round-noise=0
  env: {NCCL_CUMEM_ENABLE: 0, NCCL_NVLS_ENABLE: 0, GORACE: atexit_sleep_ms=0, %s: "%s"}
simulation: {serving_scale: 20}
timeouts: {loading: 1m, stalled: 30s, round: 1m, stopping: 10s}
workload: {dataset: random, input_tokens: 16, output_tokens: 128, requests: 2, warmup: 1, rounds: 1}
objective: {maximize: output_throughput}
space:
  groups:
    settings:
      choices:
        slow: {args: [--disable-cuda-graph]}
        fast: {env: {NCCL_P2P_LEVEL: SYS}}
      default: slow
seed: 1
budget: {trials: 1}
confirm: {top: 1, relaunches: 3}
`, worldVariable, w.folder)
	return w.write("simulated.yaml", strings.NewReplacer(change...).Replace(text))
}
