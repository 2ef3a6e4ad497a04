package local

import (
	"encoding/json"

	"nocturne/runners"
)

// readSimulated takes in what a simulated server declares about the machine it
// plays.
func (t *trial) readSimulated(document any) {
	members, _ := document.(map[string]any)
	declared, ok := members["simulated"]
	if !ok {
		return
	}
	encoded, err := json.Marshal(declared)
	if err != nil {
		return
	}
	var simulated runners.Simulated
	if json.Unmarshal(encoded, &simulated) == nil && simulated.GPU != "" {
		t.result.Simulated = &simulated
	}
}
