package search

import (
	"cmp"
	"slices"

	"nocturne/search/internal/gp"
)

// relatedFitted is the most trials of related measurements that the
// hyperparameters are fitted to, over all of them, and relatedConditioned the most
// that predictions rest on.
const (
	relatedFitted      = 48
	relatedConditioned = 150
)

// relation is one set of related measurements, read like a history.
type relation struct {
	*knowledge
	name string
	kept []*trial // what the process takes, scores relative to a usual configuration
}

// relations reads the related measurements of a request. Each set keeps its share
// of what the process can take.
func relations(request Request) []relation {
	var list []relation
	for _, related := range request.Related {
		k := newKnowledge(Request{Space: request.Space, Minimize: related.Minimize, History: related.History, Factors: request.Factors})
		r := relation{knowledge: k, name: related.Name}
		ran, crashed := k.split()
		if len(ran) > 1 {
			r.kept = ran
		}
		if len(ran) > 1 || len(crashed) > 0 {
			list = append(list, r)
		}
	}
	for i := range list {
		list[i].kept = thin(list[i].kept, max(relatedConditioned/len(list), 8))
		list[i].centre()
	}
	return list
}

// centre makes scores relative to the default where it was measured, else to the
// middle of what was: the process looks closely at what is better than that.
func (r *relation) centre() {
	if len(r.kept) == 0 {
		return
	}
	scores := make([]float64, len(r.kept))
	for i, t := range r.kept {
		scores[i] = t.score
	}
	slices.Sort(scores)
	reference := scores[len(scores)/2]
	start := r.space.pointKey(r.space.defaultPoint())
	for _, t := range r.kept {
		if t.key == start {
			reference = t.score
		}
	}
	for _, t := range r.kept {
		t.score -= reference
		for i := range t.measures {
			t.measures[i].score -= reference
		}
	}
}

const (
	// disagreeing is the fitted correlation below which related measurements are left
	// out: they would go on to say which knobs matter, and be wrong in that too.
	disagreeing = 0.5
	// heard is how many trials of its own a study has before it judges that.
	heard = 6
)

// dropDisagreeing leaves out the related measurements that the fitted process finds
// to disagree, and reports whether there were any.
func (b *belief) dropDisagreeing(ran []*trial) bool {
	if len(ran) < heard {
		return false
	}
	task := 0
	var kept []relation
	for _, r := range b.related {
		if len(r.kept) > 0 {
			if task++; b.objective.Agreement(task) < disagreeing {
				continue
			}
		}
		kept = append(kept, r)
	}
	dropped := len(kept) < len(b.related)
	b.related = kept
	return dropped
}

// join appends the related measurements as tasks 1, 2 ... with noise groups of
// their own.
func join(data []gp.Observation, list []relation, groups, most int, read reading) []gp.Observation {
	task := 0
	for _, r := range list {
		own := r.observations(thin(r.kept, max(most/len(list), 8)), read)
		if len(own) == 0 {
			continue
		}
		task++
		for i := range own {
			own[i].Task, own[i].Group = task, groups+task-1
		}
		data = append(data, own...)
	}
	return data
}

// leading lists the best configurations of the related measurements that are
// legal here, best first, some of each set.
func leading(space *Space, list []relation, most int) []point {
	var found []point
	for _, r := range list {
		order := slices.Clone(r.kept)
		slices.SortStableFunc(order, func(a, b *trial) int { return cmp.Compare(b.score, a.score) })
		n := 0
		for _, t := range order {
			if n < most && !t.pruned && !t.broken && space.legal(t.at) {
				found = append(found, t.at)
				n++
			}
		}
	}
	return found
}
