package server

import (
	"context"
	"errors"
	"regexp"
	"slices"

	"github.com/dolthub/go-mysql-server/sql"
	ast "github.com/dolthub/vitess/go/vt/sqlparser"
)

// parser is the parser of the engine, which knows less syntax than MySQL. It adds the statement DO, and notes the
// statements that it refuses, and those that lock rows, since the engine locks none.
type parser struct {
	sql.Parser
	server *Server
}

// ParseSimple implements sql.Parser.
func (p parser) ParseSimple(query string) (ast.Statement, error) {
	statement, err := p.Parser.ParseSimple(known(query))
	p.note(query, statement, err)
	return done(query, statement), err
}

// Parse implements sql.Parser.
func (p parser) Parse(ctx *sql.Context, query string, multi bool) (ast.Statement, string, string, error) {
	statement, parsed, rest, err := p.Parser.Parse(ctx, known(query), multi)
	p.note(query, statement, err)
	return done(query, statement), asked(query, parsed), rest, err
}

// ParseWithOptions implements sql.Parser.
func (p parser) ParseWithOptions(ctx context.Context, query string, delimiter rune, multi bool, options ast.ParserOptions) (ast.Statement, string, string, error) {
	statement, parsed, rest, err := p.Parser.ParseWithOptions(ctx, known(query), delimiter, multi, options)
	p.note(query, statement, err)
	return done(query, statement), asked(query, parsed), rest, err
}

// ParseOneWithOptions implements sql.Parser.
func (p parser) ParseOneWithOptions(ctx context.Context, query string, options ast.ParserOptions) (ast.Statement, int, error) {
	text := known(query)
	statement, end, err := p.Parser.ParseOneWithOptions(ctx, text, options)
	p.note(query, statement, err)
	return done(query, statement), end - len(text) + len(query), err
}

// do matches the beginning of a statement DO, which evaluates expressions and returns nothing.
var do = regexp.MustCompile(`(?i)^\s*DO\b`)

const selects = "SELECT"

// known returns a statement that the parser of the engine knows. A DO becomes a SELECT of its expressions.
func known(query string) string {
	if m := do.FindString(query); m != "" {
		return selects + query[len(m):]
	}
	return query
}

// asked returns the text of a parsed statement as the client sent it.
func asked(query, parsed string) string {
	if m := do.FindString(query); m != "" {
		return m + parsed[min(len(selects), len(parsed)):]
	}
	return parsed
}

// done returns the statement that stands for a query. A DO sets a variable of the session to each of its
// expressions in turn: the engine evaluates them, and returns no rows.
func done(query string, statement ast.Statement) ast.Statement {
	s, ok := statement.(*ast.Select)
	if !ok || !do.MatchString(query) {
		return statement
	}
	set := &ast.Set{}
	for _, e := range s.SelectExprs {
		if e, ok := e.(*ast.AliasedExpr); ok {
			set.Exprs = append(set.Exprs, &ast.SetVarExpr{Scope: ast.SetScope_User, Name: ast.NewColName("do"), Expr: e.Expr})
		}
	}
	return set
}

// literal matches a string in a statement.
var literal = regexp.MustCompile(`'(?:[^'\\]|''|\\.)*'|"(?:[^"\\]|""|\\.)*"`)

// note notes a statement that the parser refused, and one that locks rows or tables: the engine locks none.
func (p parser) note(query string, statement ast.Statement, err error) {
	if err == nil && !locks(statement) || errors.Is(err, ast.ErrEmpty) {
		return
	}
	p.server.refuse("the statement " + withoutLiterals(query))
}

// withoutLiterals returns a statement without its literals.
func withoutLiterals(query string) string { return literal.ReplaceAllString(query, "?") }

// refuse notes what the server does not simulate.
func (s *Server) refuse(what string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.refused = append(s.refused, what)
}

// locks reports whether a statement locks tables, or has a SELECT that locks its rows, such as FOR UPDATE.
func locks(statement ast.Statement) (locks bool) {
	_ = ast.Walk(func(n ast.SQLNode) (bool, error) {
		switch s := n.(type) {
		case *ast.LockTables:
			locks = true
		case *ast.Select:
			locks = locks || s.Lock != ""
		case *ast.SetOp:
			locks = locks || s.Lock != ""
		}
		return true, nil
	}, statement)
	return locks
}

// Unsimulated is sim.Parts.Unsimulated.
func (s *Server) Unsimulated() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	met := s.refused
	s.refused = nil
	slices.Sort(met) // sessions of one instant run in any order
	return met
}
