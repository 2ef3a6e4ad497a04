package load

import (
	"context"
	"fmt"
	"maps"
	"math"
	"slices"
	"sync"

	"nocturne/runners"
)

// Throttle is the set of reasons for which a GPU runs below the clock it could
// have: NVML's nvmlClocksEventReason bits, as nvidia-smi prints them under
// clocks_event_reasons.active.
type Throttle uint64

// Reasons that tell something about a measurement.
const (
	ThrottleIdle       Throttle = 0x01
	ThrottleSetting    Throttle = 0x02 // applications clocks
	ThrottlePowerCap   Throttle = 0x04 // the configured power limit; usual under load
	ThrottleHardware   Throttle = 0x08 // halved or worse: temperature or power
	ThrottleSyncBoost  Throttle = 0x10
	ThrottleSWThermal  Throttle = 0x20
	ThrottleHWThermal  Throttle = 0x40
	ThrottlePowerBrake Throttle = 0x80
	throttleSlowdown            = ThrottleHardware | ThrottleHWThermal | ThrottlePowerBrake
)

var throttleNames = []struct {
	bit  Throttle
	name string
}{
	{ThrottlePowerCap, "sw_power_cap"}, {ThrottleHardware, "hw_slowdown"}, {ThrottleSWThermal, "sw_thermal_slowdown"},
	{ThrottleHWThermal, "hw_thermal_slowdown"}, {ThrottlePowerBrake, "hw_power_brake_slowdown"},
	{ThrottleSetting, "applications_clocks_setting"}, {ThrottleSyncBoost, "sync_boost"},
}

// GPUSample is one reading of one GPU. Numbers that could not be read are NaN.
type GPUSample struct {
	GPU         int     // index
	SMClock     float64 // MHz
	Power       float64 // W
	Temperature float64 // degrees C
	Throttle    Throttle
}

// Sampler watches GPUs while a round runs.
type Sampler interface {
	// Watch hands readings to note, one after the other, until the context ends,
	// which is no error.
	Watch(ctx context.Context, note func(GPUSample)) error
}

// GPUState is what one GPU did during a round. Numbers that could not be read
// are absent (NaN).
type GPUState struct {
	GPU, Samples                  int
	MeanSMClock, LeastSMClock     float64 // MHz
	MeanPower, MeanTemperature    float64 // W, degrees C
	FirstTemperature, Temperature float64 // at the start, and the highest
	// Throttled is the share of the samples under each reason, by its name.
	Throttled map[string]float64
	slowdowns int // samples under a slowdown by hardware
}

// String is one line for a person.
func (g GPUState) String() string {
	text := fmt.Sprintf("GPU %d: SM clock %.0f MHz (least %.0f), %.0f W, %.0f to %.0f C", g.GPU, g.MeanSMClock, g.LeastSMClock,
		g.MeanPower, g.FirstTemperature, g.Temperature)
	for _, name := range slices.Sorted(maps.Keys(g.Throttled)) {
		text += fmt.Sprintf(", %s %.0f %%", name, 100*g.Throttled[name])
	}
	return text
}

// gpuTally sums the readings of one GPU.
type gpuTally struct {
	samples, slowdowns             int
	clock, power, temperature      mean
	leastClock, first, mostCelsius float64
	reasons                        map[string]int
}

// mean is a running mean of what could be read.
type mean struct {
	sum   float64
	count int
}

func (m *mean) add(v float64) {
	if !math.IsNaN(v) {
		m.sum, m.count = m.sum+v, m.count+1
	}
}

func (m mean) value() float64 { return m.sum / float64(m.count) }

func (t *gpuTally) add(s GPUSample) {
	if t.samples == 0 {
		t.first, t.leastClock, t.mostCelsius = s.Temperature, s.SMClock, s.Temperature
	}
	t.samples++
	t.clock.add(s.SMClock)
	t.power.add(s.Power)
	t.temperature.add(s.Temperature)
	t.leastClock, t.mostCelsius = leastOf(t.leastClock, s.SMClock), -leastOf(-t.mostCelsius, -s.Temperature)
	if s.Throttle&throttleSlowdown != 0 {
		t.slowdowns++
	}
	for _, reason := range throttleNames {
		if s.Throttle&reason.bit != 0 {
			t.reasons[reason.name]++
		}
	}
}

// leastOf is the smaller of two numbers, of which either may be unknown.
func leastOf(a, b float64) float64 {
	if math.IsNaN(a) || b < a {
		return b
	}
	return a
}

// gpuTallies sums readings by GPU.
type gpuTallies map[int]*gpuTally

func (g gpuTallies) add(s GPUSample) {
	if g[s.GPU] == nil {
		g[s.GPU] = &gpuTally{reasons: map[string]int{}}
	}
	g[s.GPU].add(s)
}

// join returns both together and changes neither.
func (g gpuTallies) join(other gpuTallies) gpuTallies {
	sum := gpuTallies{}
	for _, part := range []gpuTallies{g, other} {
		for gpu, more := range part {
			t := sum[gpu]
			if t == nil {
				first := *more
				first.reasons = maps.Clone(more.reasons)
				sum[gpu] = &first
				continue
			}
			t.samples, t.slowdowns = t.samples+more.samples, t.slowdowns+more.slowdowns
			t.clock, t.power, t.temperature = t.clock.plus(more.clock), t.power.plus(more.power), t.temperature.plus(more.temperature)
			t.leastClock, t.mostCelsius = leastOf(t.leastClock, more.leastClock), -leastOf(-t.mostCelsius, -more.mostCelsius)
			for name, count := range more.reasons {
				t.reasons[name] += count
			}
		}
	}
	return sum
}

func (m mean) plus(other mean) mean { return mean{m.sum + other.sum, m.count + other.count} }

// states are in the order of the GPUs.
func (g gpuTallies) states() []GPUState {
	var states []GPUState
	for _, gpu := range slices.Sorted(maps.Keys(g)) {
		t := g[gpu]
		state := GPUState{
			GPU: gpu, Samples: t.samples, MeanSMClock: t.clock.value(), LeastSMClock: t.leastClock,
			MeanPower: t.power.value(), MeanTemperature: t.temperature.value(),
			FirstTemperature: t.first, Temperature: t.mostCelsius, Throttled: map[string]float64{}, slowdowns: t.slowdowns,
		}
		for name, count := range t.reasons {
			state.Throttled[name] = float64(count) / float64(t.samples)
		}
		states = append(states, state)
	}
	return states
}

// putGPUs writes means over the GPUs, the least clock, the highest temperature,
// and the greatest share of throttled samples of any GPU.
func putGPUs(m runners.Metrics, states []GPUState) {
	if len(states) == 0 {
		return
	}
	var clock, power mean
	least, hottest, capped, slowed := math.NaN(), math.NaN(), 0.0, 0.0
	for _, s := range states {
		clock.add(s.MeanSMClock)
		power.add(s.MeanPower)
		least, hottest = leastOf(least, s.LeastSMClock), -leastOf(-hottest, -s.Temperature)
		capped = max(capped, s.Throttled["sw_power_cap"])
		slowed = max(slowed, float64(s.slowdowns)/float64(s.Samples))
	}
	for name, v := range map[string]float64{
		MetricGPUClock: clock.value(), MetricGPULeastClock: least, MetricGPUPower: power.value(),
		MetricGPUTemperature: hottest, MetricGPUPowerCapped: capped, MetricGPUSlowed: slowed,
	} {
		if !math.IsNaN(v) {
			m[name] = v
		}
	}
}

// gpuWatch runs a sampler beside a round.
type gpuWatch struct {
	cancel  context.CancelFunc
	group   sync.WaitGroup
	tallies gpuTallies
	err     error
}

// watchGPUs begins to watch; without a sampler nothing is watched.
func watchGPUs(ctx context.Context, sampler Sampler) *gpuWatch {
	ctx, cancel := context.WithCancel(ctx)
	w := &gpuWatch{cancel: cancel}
	if sampler != nil {
		w.tallies = gpuTallies{}
		w.group.Go(func() {
			if err := sampler.Watch(ctx, w.tallies.add); ctx.Err() == nil {
				w.err = err
			}
		})
	}
	return w
}

// stop ends the watch. A failure is a note.
func (w *gpuWatch) stop(notes *[]string) gpuTallies {
	w.cancel()
	w.group.Wait()
	if w.err != nil {
		*notes = append(*notes, fmt.Sprintf("the state of the GPUs is unknown for a part of the round: %v", w.err))
	}
	return w.tallies
}
