package server

import (
	"github.com/dolthub/go-mysql-server/sql"
	"github.com/dolthub/go-mysql-server/sql/expression/function"
	"github.com/dolthub/go-mysql-server/sql/plan"
	"github.com/dolthub/go-mysql-server/sql/transform"
	"github.com/dolthub/go-mysql-server/sql/types"
)

// builder is the builder of the engine. After some statements the engine tells a client a number of an earlier one, and
// after others it does not tell what LAST_INSERT_ID(expr) returned: see inserted.
type builder struct{ sql.NodeExecBuilder }

// Build implements sql.NodeExecBuilder.
func (b builder) Build(ctx *sql.Context, n sql.Node, row sql.Row) (sql.RowIter, error) {
	var i inserted
	noting := func(n sql.Node) (sql.Node, error) {
		n, _, err := transform.NodeExprs(n, func(e sql.Expression) (sql.Expression, transform.TreeIdentity, error) {
			if f, ok := e.(*function.LastInsertId); ok && f.Child != nil {
				return noted{f, i.set}, transform.NewTree, nil
			}
			return e, transform.SameTree, nil
		})
		return n, err
	}
	var err error
	switch of := n.(type) {
	case *plan.InsertInto:
		i.set = new(bool)
		i.counts = of.Destination.Schema().HasAutoIncrement()
		var source sql.Node
		if source, err = noting(of.Source); err == nil {
			n, err = noting(of.WithSource(source))
		}
	case *plan.Update:
		i.set = new(bool)
		n, err = noting(n)
	}
	if err != nil {
		return nil, err
	}
	i.RowIter, err = b.NodeExecBuilder.Build(ctx, n, row)
	if i.set == nil || err != nil {
		return i.RowIter, err
	}
	return i, nil
}

// noted is a LAST_INSERT_ID(expr) that notes that it was evaluated.
type noted struct {
	*function.LastInsertId
	set *bool
}

// Eval implements sql.Expression.
func (e noted) Eval(ctx *sql.Context, row sql.Row) (any, error) {
	*e.set = true
	return e.LastInsertId.Eval(ctx, row)
}

// inserted is the answer to an INSERT, a REPLACE or an UPDATE. Like that of MySQL it has the number that the table
// counted, or else what LAST_INSERT_ID(expr) returned last in this statement, or else 0.
type inserted struct {
	sql.RowIter
	set    *bool // whether the statement evaluated LAST_INSERT_ID(expr)
	counts bool  // whether the table has a column that it counts
}

// GetChildIter implements sql.MutableRowIter, by which the engine counts the rows below.
func (i inserted) GetChildIter() sql.RowIter { return i.RowIter }

// WithChildIter implements sql.MutableRowIter.
func (i inserted) WithChildIter(child sql.RowIter) sql.RowIter {
	i.RowIter = child
	return i
}

// Next implements sql.RowIter.
func (i inserted) Next(ctx *sql.Context) (sql.Row, error) {
	row, err := i.RowIter.Next(ctx)
	if err != nil || !types.IsOkResult(row) {
		return row, err
	}
	ok := types.GetOkResult(row)
	switch {
	case *i.set && ok.InsertID == 0:
		ok.InsertID = uint64(ctx.GetLastQueryInfoInt(sql.LastInsertId))
	case !*i.set && !i.counts:
		ok.InsertID = 0
	}
	return sql.NewRow(ok), nil
}
