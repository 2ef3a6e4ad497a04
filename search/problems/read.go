package problems

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"

	"nocturne/search"
)

// ReadCSV reads a recorded table: a line of names, then one line for each
// configuration. The column named by objective holds the value, and an empty field
// there says that the configuration is invalid; the columns in ignore are left out,
// and all others are knobs. Texts that are numbers or booleans are read as such, and
// an empty field as unset.
func ReadCSV(in io.Reader, objective string, ignore []string) (rows []Record, knobs []string, err error) {
	lines, err := csv.NewReader(in).ReadAll()
	if err != nil {
		return nil, nil, fmt.Errorf("recorded table: %w", err)
	}
	if len(lines) < 2 {
		return nil, nil, errors.New("recorded table: want a line of names and at least one configuration")
	}
	names := lines[0]
	if err := hasColumns(names, objective, ignore); err != nil {
		return nil, nil, err
	}
	for number, line := range lines[1:] {
		row := Record{Values: search.Values{}}
		for i, name := range names {
			switch {
			case name == objective:
				if row.Value, err = measured(line[i]); err != nil {
					return nil, nil, fmt.Errorf("recorded table: line %d: %w", number+2, err)
				}
			case !slices.Contains(ignore, name):
				row.Values[name] = plainValue(line[i])
			}
		}
		rows = append(rows, row)
	}
	return rows, slices.DeleteFunc(names, func(name string) bool { return name == objective || slices.Contains(ignore, name) }), nil
}

// ReadJSON reads a recorded table that is a list of objects, one for each
// configuration, otherwise as ReadCSV does; null stands for an empty field.
func ReadJSON(in io.Reader, objective string, ignore []string) (rows []Record, knobs []string, err error) {
	var list []map[string]json.RawMessage
	if err := json.NewDecoder(in).Decode(&list); err != nil {
		return nil, nil, fmt.Errorf("recorded table: want a list of objects: %w", err)
	}
	if len(list) == 0 {
		return nil, nil, errors.New("recorded table: want at least one configuration")
	}
	for name := range list[0] {
		knobs = append(knobs, name)
	}
	slices.Sort(knobs)
	if err := hasColumns(knobs, objective, ignore); err != nil {
		return nil, nil, err
	}
	knobs = slices.DeleteFunc(knobs, func(name string) bool { return name == objective || slices.Contains(ignore, name) })
	for number, object := range list {
		row := Record{Values: search.Values{}, Value: math.NaN()}
		for _, name := range knobs {
			var value search.Value
			if raw, given := object[name]; given {
				if err := value.UnmarshalJSON(raw); err != nil {
					return nil, nil, fmt.Errorf("recorded table: configuration %d: %s: %w", number+1, name, err)
				}
			}
			row.Values[name] = value
		}
		text := string(bytes.Trim(object[objective], `"`))
		if text == "null" {
			text = ""
		}
		if row.Value, err = measured(text); err != nil {
			return nil, nil, fmt.Errorf("recorded table: configuration %d: %w", number+1, err)
		}
		rows = append(rows, row)
	}
	return rows, knobs, nil
}

func hasColumns(names []string, objective string, ignore []string) error {
	for _, name := range append([]string{objective}, ignore...) {
		if !slices.Contains(names, name) {
			return fmt.Errorf("recorded table: there is no column %s, only %s", name, strings.Join(names, ", "))
		}
	}
	return nil
}

// measured is the value of the objective, NaN for an empty text.
func measured(text string) (float64, error) {
	if text == "" {
		return math.NaN(), nil
	}
	value, err := strconv.ParseFloat(text, 64)
	if err != nil || math.IsNaN(value) || math.IsInf(value, 0) || value <= 0 {
		return 0, fmt.Errorf("objective %q, want a number above 0, or nothing for an invalid configuration", text)
	}
	return value, nil
}

// plainValue reads a field as what it looks like.
func plainValue(text string) search.Value {
	if text == "" {
		return search.Unset
	}
	if whole, err := strconv.ParseInt(text, 10, 64); err == nil {
		return search.Int(whole)
	}
	if number, err := strconv.ParseFloat(text, 64); err == nil && !math.IsNaN(number) && !math.IsInf(number, 0) {
		return search.Float(number)
	}
	switch strings.ToLower(text) {
	case "true":
		return search.Bool(true)
	case "false":
		return search.Bool(false)
	}
	return search.Text(text)
}
