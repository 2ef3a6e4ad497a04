package load

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"nocturne/runners"
)

// readings is a sampler that gives its readings 100 ms apart, then waits.
type readings []GPUSample

func (r readings) Watch(ctx context.Context, note func(GPUSample)) error {
	for _, sample := range r {
		note(sample)
		if waitUntil(ctx, time.Now().Add(100*ms)) != nil {
			return nil
		}
	}
	<-ctx.Done()
	return nil
}

// measured is a round of a second beside the sampler.
func measured(t *testing.T, sampler Sampler) (o RoundOutcome) {
	t.Helper()
	virtual(t, func(t *testing.T) {
		client := serve(t, OpenAICompletions, script(completion(100*ms, 100*ms, 10, 10)...))
		var err error
		o, err = client.Round(t.Context(), RoundSpec{Prompts: prompts(1), Concurrency: 1, OutputTokens: 10, Sampler: sampler})
		if err != nil {
			t.Fatal(err)
		}
	})
	return o
}

// F28: a clock that falls under a slowdown flag makes the round invalid, a power
// cap alone is on record.
func TestF28_ClocksAndThrottling(t *testing.T) {
	cool := readings{
		{0, 1875, 400, 55, ThrottlePowerCap}, {1, 1860, 380, 50, 0}, {0, 1855, 420, 60, ThrottlePowerCap}, {1, 1860, 390, math.NaN(), 0},
	}
	o := measured(t, cool)
	want := []GPUState{
		{GPU: 0, Samples: 2, MeanSMClock: 1865, LeastSMClock: 1855, MeanPower: 410, MeanTemperature: 57.5, FirstTemperature: 55, Temperature: 60,
			Throttled: map[string]float64{"sw_power_cap": 1}},
		{GPU: 1, Samples: 2, MeanSMClock: 1860, LeastSMClock: 1860, MeanPower: 385, MeanTemperature: 50, FirstTemperature: 50, Temperature: 50,
			Throttled: map[string]float64{}},
	}
	if diff := cmp.Diff(want, o.GPUs, cmpopts.IgnoreUnexported(GPUState{})); diff != "" {
		t.Error(diff)
	}
	for name, v := range map[string]float64{
		MetricGPUClock: 1862.5, MetricGPULeastClock: 1855, MetricGPUPower: 397.5, MetricGPUTemperature: 60, MetricGPUPowerCapped: 1, MetricGPUSlowed: 0,
	} {
		wantMetric(t, o, name, v)
	}
	if o.Verdict.Outcome != runners.Complete {
		t.Errorf("verdict %+v", o.Verdict)
	}

	hot := readings{{0, 1875, 600, 70, 0}, {0, 1500, 500, 88, ThrottleHardware | ThrottleHWThermal}, {0, 1155, 350, 91, ThrottleHardware | ThrottleHWThermal}}
	o = measured(t, hot)
	if o.Verdict.Outcome != runners.Invalid || o.Verdict.Failures[0].Reason != ReasonGPUSlowdown ||
		!strings.Contains(o.Verdict.Failures[0].Message, "GPU 0: SM clock 1510 MHz (least 1155), 483 W, 70 to 91 C, hw_slowdown 67 %, hw_thermal_slowdown 67 % (in 2 of 3 samples)") {
		t.Errorf("verdict %+v", o.Verdict)
	}
	// A single sample is the change of a power state.
	if o = measured(t, hot[:2]); o.Verdict.Outcome != runners.Complete {
		t.Errorf("one sample of two: verdict %+v", o.Verdict)
	}
	pooled := Pool(measured(t, hot[:2]), measured(t, hot[1:]))
	wantMetric(t, pooled, MetricGPUSlowed, 0.75)
	wantMetric(t, pooled, MetricGPUTemperature, 91)
	if pooled.GPUs[0].Samples != 4 || pooled.Verdict.Outcome != runners.Invalid {
		t.Errorf("pooled %+v, verdict %+v", pooled.GPUs, pooled.Verdict)
	}
}

type brokenSampler struct{}

func (brokenSampler) Watch(context.Context, func(GPUSample)) error { return errors.New("no device") }

func TestSampler_FailureIsANote(t *testing.T) {
	o := measured(t, brokenSampler{})
	if o.Verdict.Outcome != runners.Complete || !strings.Contains(strings.Join(o.Notes, "\n"), "unknown for a part of the round: no device") {
		t.Errorf("verdict %+v, notes %q", o.Verdict, o.Notes)
	}
	wantAbsent(t, o, MetricGPUClock, MetricGPUSlowed)
}

func TestParseSMILine(t *testing.T) {
	nan := math.NaN()
	for line, want := range map[string]GPUSample{
		"0, 345, 79.74, 35, 0x0000000000000001":            {0, 345, 79.74, 35, ThrottleIdle}, // an H200, driver 580
		"7, 1980, 699.12, 71, 0x0000000000000004":          {7, 1980, 699.12, 71, ThrottlePowerCap},
		"1,1155,[N/A],[Not Supported],0x0000000000000048":  {1, 1155, nan, nan, ThrottleHardware | ThrottleHWThermal},
		"2, [Unknown Error], [Unknown Error], 30, [N/A]\r": {2, nan, nan, 30, 0},
	} {
		got, err := parseSMILine(line)
		if diff := cmp.Diff(want, got, cmpopts.EquateNaNs()); diff != "" || err != nil {
			t.Errorf("%q: %v %s", line, err, diff)
		}
	}
	for _, line := range []string{"", "No devices were found", "-1, 2, 3, 4, 5", "0, 1, 2, 3", "Unable to determine the device handle for GPU0000:1B:00.0: Unknown Error"} {
		if _, err := parseSMILine(line); err == nil {
			t.Errorf("%q was taken for a reading", line)
		}
	}
}

func FuzzSMILine(f *testing.F) {
	f.Add("0, 345, 79.74, 35, 0x0000000000000001")
	f.Add("1,[N/A],inf,NaN,0xZZ")
	f.Fuzz(func(t *testing.T, line string) {
		sample, err := parseSMILine(line)
		if err == nil && (sample.GPU < 0 || math.IsInf(sample.SMClock, 0) || math.IsInf(sample.Power, 0) || math.IsInf(sample.Temperature, 0)) {
			t.Errorf("%q gives %+v", line, sample)
		}
	})
}

// program writes a stand-in for nvidia-smi.
func program(t *testing.T, script string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "nvidia-smi")
	if err := os.WriteFile(path, []byte("#!/bin/sh\n"+script), 0o700); err != nil {
		t.Fatal(err)
	}
	return path
}

// One process prints until it is told to stop; what it prints then still counts.
func TestSMI_Watch(t *testing.T) {
	smi := SMI{Interval: 250 * ms, Indices: []int{1}, Program: program(t, `
		echo "$*" > "$0.args"
		trap 'echo "1, 1700, 310, 61, 0x0000000000000000"; exit 0' TERM
		echo "0, 1800, 300, 60, 0x0000000000000000"
		echo "1, 1800, 300, 60, 0x0000000000000004"
		while :; do sleep 0.01; done`)}
	ctx, cancel := context.WithCancel(t.Context())
	var got []GPUSample
	if err := smi.Watch(ctx, func(s GPUSample) { got = append(got, s); cancel() }); err != nil {
		t.Fatal(err)
	}
	want := []GPUSample{{1, 1800, 300, 60, ThrottlePowerCap}, {1, 1700, 310, 61, 0}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	args, err := os.ReadFile(smi.Program + ".args")
	if err != nil || strings.TrimSpace(string(args)) != "--query-gpu=index,clocks.sm,power.draw,temperature.gpu,clocks_event_reasons.active --format=csv,noheader,nounits --loop-ms=250" {
		t.Errorf("called with %s, %v", args, err)
	}
}

// Drivers before 535 know the reasons under their older name only.
func TestSMI_OlderDriver(t *testing.T) {
	smi := SMI{Program: program(t, `
		case "$1" in *clocks_event*) echo 'Field "clocks_event_reasons.active" is not a valid field to query.'; exit 2;; esac
		echo "0, 1800, 300, 60, 0x0000000000000000"`)}
	count := 0
	if err := smi.Watch(t.Context(), func(GPUSample) { count++ }); err != nil || count != 1 {
		t.Errorf("%d readings, %v", count, err)
	}
}

func TestSMI_Failures(t *testing.T) {
	for script, want := range map[string]string{
		"echo 'No devices were found'; exit 6":                                                "exit status 6: No devices were found",
		"echo \"NVIDIA-SMI has failed because it couldn't communicate\" >&2; exit 9":          "couldn't communicate",
		"echo 'Field \"clocks.sm\" is not a valid field to query.'; exit 2":                   "clocks.sm",
		"echo '0, 1800, 300, 60, 0x0'; echo 'Unable to determine the device handle'; exit 15": "Unable to determine",
	} {
		err := SMI{Program: program(t, script)}.Watch(t.Context(), func(GPUSample) {})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", script, err, want)
		}
	}
	if err := (SMI{Program: "/no/such/nvidia-smi"}).Watch(t.Context(), nil); err == nil {
		t.Error("a missing program did not fail")
	}
}

func TestFindSMI(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	if sampler := FindSMI(nil); sampler != nil {
		t.Errorf("found %+v on an empty path", sampler)
	}
	path := program(t, "exit 0")
	t.Setenv("PATH", filepath.Dir(path))
	if got := fmt.Sprint(FindSMI([]int{2})); got != fmt.Sprint(SMI{Program: path, Indices: []int{2}}) {
		t.Errorf("found %s", got)
	}
}
