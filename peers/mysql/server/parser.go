package server

import (
	"context"
	"errors"
	"regexp"
	"slices"

	"github.com/dolthub/go-mysql-server/sql"
	ast "github.com/dolthub/vitess/go/vt/sqlparser"
)

// parser is the parser of the engine, which knows less syntax than MySQL. It notes the statements that it refuses.
type parser struct {
	sql.Parser
	server *Server
}

// ParseSimple implements sql.Parser.
func (p parser) ParseSimple(query string) (ast.Statement, error) {
	statement, err := p.Parser.ParseSimple(query)
	p.note(query, err)
	return statement, err
}

// Parse implements sql.Parser.
func (p parser) Parse(ctx *sql.Context, query string, multi bool) (ast.Statement, string, string, error) {
	statement, parsed, rest, err := p.Parser.Parse(ctx, query, multi)
	p.note(query, err)
	return statement, parsed, rest, err
}

// ParseWithOptions implements sql.Parser.
func (p parser) ParseWithOptions(ctx context.Context, query string, delimiter rune, multi bool, options ast.ParserOptions) (ast.Statement, string, string, error) {
	statement, parsed, rest, err := p.Parser.ParseWithOptions(ctx, query, delimiter, multi, options)
	p.note(query, err)
	return statement, parsed, rest, err
}

// ParseOneWithOptions implements sql.Parser.
func (p parser) ParseOneWithOptions(ctx context.Context, query string, options ast.ParserOptions) (ast.Statement, int, error) {
	statement, end, err := p.Parser.ParseOneWithOptions(ctx, query, options)
	p.note(query, err)
	return statement, end, err
}

// literal matches a string in a statement.
var literal = regexp.MustCompile(`'(?:[^'\\]|''|\\.)*'|"(?:[^"\\]|""|\\.)*"`)

// note notes a statement that the parser refused.
func (p parser) note(query string, err error) {
	if err == nil || errors.Is(err, ast.ErrEmpty) {
		return
	}
	s := p.server
	s.mu.Lock()
	defer s.mu.Unlock()
	s.refused = append(s.refused, "the statement "+literal.ReplaceAllString(query, "?"))
}

// Unsimulated implements sim.PartialStream.
func (s *Server) Unsimulated() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	met := s.refused
	s.refused = nil
	slices.Sort(met) // sessions of one instant run in any order
	return met
}
