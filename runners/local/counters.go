package local

import (
	"nocturne/runners/load"
	"nocturne/runners/servers"
)

// counterTable is the kind's counters in the load generator's form.
func counterTable(metrics *servers.Metrics) *load.CounterTable {
	if metrics == nil {
		return nil
	}
	table := &load.CounterTable{
		Path: metrics.Path, Families: make(map[load.Counter][]string, len(metrics.Sums)),
		AcceptedByPosition: metrics.ByPosition, PositionLabel: metrics.PositionLabel,
	}
	for name, families := range metrics.Sums {
		table.Families[load.Counter(name)] = families
	}
	return table
}
