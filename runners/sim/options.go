package sim

import (
	"fmt"
	"strconv"
	"time"
)

// options is a parsed command line.
type options struct {
	values      values
	speculation speculation
	// refusal is set when the server parses its arguments but dies over them.
	refusal string
	// notes are warnings that the server prints about its arguments.
	notes []string

	machine                 machine
	nccl                    ncclVersion
	faults                  faults
	loadTime                time.Duration
	loadScale, servingScale float64
	launchNoise, roundNoise float64
	drift                   float64
	seed                    uint64
	bypassNCCL              bool
	workers                 int
	driver, cuda, stateFile string
}

func parseOptions(args []string) (*options, error) {
	flags := append(append([]flag{}, serverFlags...), simulationFlags...)
	parsed, err := parseFlags(flags, args)
	if err != nil {
		return nil, err
	}
	o := &options{values: parsed}
	if o.text("model_path") == "" {
		return nil, usagef("the following arguments are required: --model-path/--model")
	}
	if err := o.readSimulation(); err != nil {
		return nil, &UsageError{err.Error()}
	}
	if err := o.checkRanges(); err != nil {
		return nil, err
	}
	o.readSpeculation()
	return o, nil
}

// readSimulation reads the --sim- flags.
func (o *options) readSimulation() error {
	var err error
	if o.machine, err = machineNamed(o.text("sim_gpu")); err != nil {
		return err
	}
	if o.nccl, err = parseNCCLVersion(o.text("sim_nccl")); err != nil {
		return err
	}
	if o.faults, err = parseFaults(o.text("sim_faults")); err != nil {
		return err
	}
	if o.loadTime, err = time.ParseDuration(o.text("sim_load_time")); err != nil || o.loadTime < 0 {
		return fmt.Errorf("--sim-load-time %q is not a duration such as 15m", o.text("sim_load_time"))
	}
	o.loadScale, o.servingScale = o.float("sim_load_scale"), o.float("sim_serving_scale")
	if !(o.loadScale > 0) || !(o.servingScale > 0) {
		return fmt.Errorf("--sim-load-scale and --sim-serving-scale must be above 0")
	}
	o.launchNoise, o.roundNoise, o.drift = o.float("sim_launch_noise"), o.float("sim_round_noise"), o.float("sim_drift")
	if o.launchNoise < 0 || o.roundNoise < 0 || o.drift < 0 || o.drift >= 1 {
		return fmt.Errorf("--sim-launch-noise, --sim-round-noise and --sim-drift are shares from 0 to 1")
	}
	o.seed = uint64(o.number("sim_seed"))
	o.bypassNCCL = o.on("sim_bypass_nccl")
	o.driver, o.cuda, o.stateFile = o.text("sim_driver"), o.text("sim_cuda"), o.text("sim_state")
	if o.workers = o.number("sim_workers"); o.workers < 0 {
		o.workers = o.ranks()
	}
	return nil
}

func (o *options) checkRanges() error {
	for _, name := range []string{"tp_size", "num_continuous_decode_steps", "stream_interval", "decode_log_interval", "page_size"} {
		if o.number(name) < 1 {
			return usagef("%s must be at least 1, got %s", name, o.text(name))
		}
	}
	if ranks := o.ranks(); ranks > 16 || o.workers > 64 {
		return usagef("the simulated machines have at most 16 GPUs, got --tp-size %d", ranks)
	}
	return nil
}

func (o *options) text(name string) string { return o.values[name] }
func (o *options) on(name string) bool     { return o.values[name] == "true" }

// number returns an integer flag, 0 when it is not set; flags were checked when
// they were parsed.
func (o *options) number(name string) int {
	value, _ := strconv.Atoi(o.values[name])
	return value
}

func (o *options) float(name string) float64 {
	value, _ := strconv.ParseFloat(o.values[name], 64)
	return value
}

func (o *options) ranks() int { return o.number("tp_size") }

// modelID is what the model list reports.
func (o *options) modelID() string {
	if name, wrong := o.faults[faultWrongModel]; wrong {
		return name
	}
	if name := o.text("served_model_name"); name != "" {
		return name
	}
	return o.text("model_path")
}

// standardGraphBatch is the largest batch captured when nobody says anything.
const standardGraphBatch = 160

// graphBatch is the largest batch that runs as a CUDA graph; 0 without graphs.
func (o *options) graphBatch() int {
	if o.on("disable_cuda_graph") {
		return 0
	}
	if batch := o.number("cuda_graph_max_bs_decode"); batch > 0 {
		return batch
	}
	return standardGraphBatch
}

// Admission limits that the server sets by itself.
const (
	standardRunning    = 256
	speculativeRunning = 48
)

// maxRunning is the number of requests that run at once.
func (o *options) maxRunning() int {
	if limit := o.number("max_running_requests"); limit > 0 {
		return limit
	}
	if o.speculation.steps > 0 {
		return speculativeRunning
	}
	return standardRunning
}
