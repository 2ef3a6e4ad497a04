package sqlstore

import (
	"context"
	"strconv"
	"strings"
)

const (
	// maxParameters is how many parameters a statement may have: SQLite takes
	// 32766, PostgreSQL 65535.
	maxParameters = 30000
	// insertParameters is how many an insert of several rows has at most. SQLite
	// looks each one up among all: longer statements are slower for each row.
	insertParameters = 500
)

// expression is SQL that stands in a statement itself, not as a parameter.
type expression string

// parameters are the values of a statement that is being written.
type parameters []any

// add appends a value and returns its placeholder. Texts are made storable, and
// zero has no sign, which not every column keeps.
func (p *parameters) add(value any) string {
	switch v := value.(type) {
	case expression:
		return string(v)
	case string:
		value = text(v)
	case float64:
		if v == 0 {
			value = 0.0
		}
	}
	*p = append(*p, value)
	return "$" + strconv.Itoa(len(*p))
}

// list appends values and returns "(placeholder, ...)" for the operator in.
func list[T ~string](p *parameters, values []T) string {
	placeholders := make([]string, len(values))
	for i, value := range values {
		placeholders[i] = p.add(string(value))
	}
	return "(" + strings.Join(placeholders, ", ") + ")"
}

// conditions are joined by "and".
type conditions []string

func (c *conditions) add(condition string) { *c = append(*c, condition) }

// where returns the clause, empty without conditions.
func (c conditions) where() string {
	if len(c) == 0 {
		return ""
	}
	return " where " + strings.Join(c, " and ")
}

// column is a column and its value in one row.
type column struct {
	name  string
	value any
}

// assignments returns "name = placeholder, ..." for an update.
func (p *parameters) assignments(columns []column) string {
	parts := make([]string, len(columns))
	for i, column := range columns {
		parts[i] = column.name + " = " + p.add(column.value)
	}
	return strings.Join(parts, ", ")
}

// insert adds rows, all with the same columns, and returns how many were added.
// suffix ends the statement, such as "on conflict ...".
func (tx *transaction) insert(ctx context.Context, table string, rows [][]column, suffix string) (added int64, err error) {
	for len(rows) > 0 {
		batch := rows[:min(len(rows), insertParameters/len(rows[0]))]
		rows = rows[len(batch):]
		statement, values := insertStatement(table, batch, suffix)
		count, err := affected(tx.ExecContext(ctx, statement, values...))
		if err != nil {
			return added, err
		}
		added += count
	}
	return added, nil
}

func insertStatement(table string, rows [][]column, suffix string) (string, parameters) {
	var values parameters
	var statement strings.Builder
	names := make([]string, len(rows[0]))
	for i, column := range rows[0] {
		names[i] = column.name
	}
	statement.WriteString("insert into " + table + " (" + strings.Join(names, ", ") + ") values ")
	for i, row := range rows {
		placeholders := make([]string, len(row))
		for j, column := range row {
			placeholders[j] = values.add(column.value)
		}
		if i > 0 {
			statement.WriteString(", ")
		}
		statement.WriteString("(" + strings.Join(placeholders, ", ") + ")")
	}
	statement.WriteString(" " + suffix)
	return statement.String(), values
}
