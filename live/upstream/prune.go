package upstream

import (
	"bytes"
	"go/ast"
	"go/parser"
	"go/token"
	"path"
	"slices"
	"strconv"
	"strings"
)

// pruned returns the text of a Go file without the declarations, methods, fields and imports that no test of
// the file reaches. It goes by names, so that it keeps too much rather than too little. If no code of the file
// calls a method of an unexported type, another package may call it through an interface; it stays with its type.
// Comments that belong to no declaration stay.
func pruned(text []byte) ([]byte, error) {
	set := token.NewFileSet()
	f, err := parser.ParseFile(set, "", text, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	r := newReach(f)
	for r.grow() {
	}
	var cuts [][2]int
	cut := func(n ast.Node, comments ...*ast.CommentGroup) {
		from, to := n.Pos(), n.End()
		for _, c := range comments {
			if c != nil {
				from, to = min(from, c.Pos()), max(to, c.End())
			}
		}
		cuts = append(cuts, lines(text, set.Position(from).Offset, set.Position(to).Offset))
	}
	for _, d := range f.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			if !r.kept[d] {
				cut(d, d.Doc)
			}
		case *ast.GenDecl:
			if !slices.ContainsFunc(d.Specs, func(s ast.Spec) bool { return r.kept[s] }) {
				cut(d, d.Doc)
				continue
			}
			for _, s := range d.Specs {
				if r.kept[s] {
					continue
				}
				switch s := s.(type) {
				case *ast.ValueSpec:
					cut(s, s.Doc, s.Comment)
				case *ast.TypeSpec:
					cut(s, s.Doc, s.Comment)
				case *ast.ImportSpec:
					cut(s, s.Doc, s.Comment)
				}
			}
		}
	}
	for _, m := range r.members {
		if r.kept[m.owner] && !r.kept[m.field] {
			cut(m.field, m.field.Doc, m.field.Comment)
		}
	}
	slices.SortFunc(cuts, func(a, b [2]int) int { return a[0] - b[0] })
	var out bytes.Buffer
	at := 0
	for _, c := range cuts {
		if c[0] >= at {
			out.Write(text[at:c[0]])
		}
		at = max(at, c[1])
	}
	out.Write(text[at:])
	return out.Bytes(), nil
}

// lines extends a piece of a text to its lines if nothing else is on them.
func lines(text []byte, from, to int) [2]int {
	begin := bytes.LastIndexByte(text[:from], '\n') + 1
	if end := bytes.IndexByte(text[to:], '\n'); end >= 0 && len(bytes.TrimSpace(text[begin:from])) == 0 && len(bytes.TrimSpace(text[to:to+end])) == 0 {
		return [2]int{begin, to + end + 1}
	}
	return [2]int{from, to}
}

// reach has the parts of a file that its tests reach.
type reach struct {
	file    *ast.File
	types   map[string]*ast.TypeSpec
	members []member
	kept    map[ast.Node]bool
	// names has the identifiers in the code that is reached. selected has the identifiers behind a dot,
	// and the keys of literals.
	names, selected map[string]bool
	whole           map[string]bool // types that have a literal without the names of fields
	called          map[string]bool // selected in any code of the file, or a method of an interface of the file
}

// member is a field of a struct or a method of an interface.
type member struct {
	owner *ast.TypeSpec
	field *ast.Field
}

func newReach(f *ast.File) *reach {
	r := &reach{file: f, types: map[string]*ast.TypeSpec{}, kept: map[ast.Node]bool{}, names: map[string]bool{}, selected: map[string]bool{}, whole: map[string]bool{}, called: map[string]bool{}}
	ast.Inspect(f, func(n ast.Node) bool {
		s, ok := n.(*ast.TypeSpec)
		if !ok {
			return true
		}
		r.types[s.Name.Name] = s
		if fields := fieldsOf(s); fields != nil {
			for _, field := range fields.List {
				r.members = append(r.members, member{s, field})
			}
		}
		return true
	})
	ast.Inspect(f, func(n ast.Node) bool {
		if n, ok := n.(*ast.SelectorExpr); ok && !r.ofPackage(n) {
			r.called[n.Sel.Name] = true
		}
		return true
	})
	for _, m := range r.members {
		if _, ok := m.owner.Type.(*ast.InterfaceType); ok {
			for _, name := range m.field.Names {
				r.called[name.Name] = true
			}
		}
	}
	return r
}

// fieldsOf returns the fields of a struct or the methods of an interface; nil: the type is neither.
func fieldsOf(s *ast.TypeSpec) *ast.FieldList {
	switch t := s.Type.(type) {
	case *ast.StructType:
		return t.Fields
	case *ast.InterfaceType:
		return t.Methods
	}
	return nil
}

// ofPackage reports whether an expression names a declaration of an imported package, or a method of a field whose type is
// from such a package. No variable of a test has the name of a package.
func (r *reach) ofPackage(n *ast.SelectorExpr) bool {
	switch x := n.X.(type) {
	case *ast.Ident:
		return slices.ContainsFunc(r.file.Imports, func(s *ast.ImportSpec) bool { return importedAs(s) == x.Name })
	case *ast.SelectorExpr:
		return r.isForeign(x.Sel.Name)
	}
	return false
}

// isForeign reports whether there are fields with a name, and all of their types are from imported packages.
func (r *reach) isForeign(name string) (all bool) {
	for _, m := range r.members {
		if !slices.ContainsFunc(m.field.Names, func(x *ast.Ident) bool { return x.Name == name }) {
			continue
		}
		t := m.field.Type
		if star, ok := t.(*ast.StarExpr); ok {
			t = star.X
		}
		if _, all = t.(*ast.SelectorExpr); !all {
			return false
		}
	}
	return all
}

// importedAs returns the name of an imported package. If the import gives none, importedAs guesses it from the path, as the
// tools of Go do.
func importedAs(s *ast.ImportSpec) string {
	if s.Name != nil {
		return s.Name.Name
	}
	to, err := strconv.Unquote(s.Path.Value)
	if err != nil {
		return ""
	}
	base := path.Base(to)
	if version, ok := strings.CutPrefix(base, "v"); ok && version != "" && strings.Trim(version, "0123456789") == "" {
		base = path.Base(path.Dir(to))
	}
	base, _, _ = strings.Cut(strings.TrimPrefix(base, "go-"), ".")
	return base
}

// grow keeps the nodes that the names so far reach, and reports whether one of them is new.
func (r *reach) grow() (more bool) {
	keep := func(n ast.Node, code ...ast.Node) {
		if r.kept[n] {
			return
		}
		r.kept[n], more = true, true
		for _, c := range code {
			r.visit(c)
		}
	}
	for _, d := range r.file.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			switch name := d.Name.Name; {
			case d.Recv == nil && (r.names[name] || strings.HasPrefix(name, "Test")),
				d.Recv != nil && r.names[receiver(d)] && (r.selected[name] || !r.called[name] && !ast.IsExported(receiver(d))):
				keep(d, d.Recv, d.Type, d.Body)
			}
		case *ast.GenDecl:
			for _, s := range d.Specs {
				switch s := s.(type) {
				case *ast.ImportSpec:
					if r.names[importedAs(s)] {
						keep(s)
					}
				case *ast.ValueSpec:
					if slices.ContainsFunc(s.Names, func(x *ast.Ident) bool { return r.names[x.Name] && x.Name != "_" }) {
						keep(s, s)
					}
				case *ast.TypeSpec:
					if !r.names[s.Name.Name] {
						continue
					}
					if fieldsOf(s) == nil {
						keep(s, s.Type)
					} else {
						keep(s)
					}
				}
			}
		}
	}
	for _, m := range r.members {
		_, isStruct := m.owner.Type.(*ast.StructType)
		needed := len(m.field.Names) == 0 || isStruct && r.whole[m.owner.Name.Name] ||
			slices.ContainsFunc(m.field.Names, func(x *ast.Ident) bool { return r.selected[x.Name] })
		if r.kept[m.owner] && needed {
			keep(m.field, m.field.Type)
		}
	}
	return more
}

// receiver returns the name of the type of a method.
func receiver(d *ast.FuncDecl) string {
	t := d.Recv.List[0].Type
	if star, ok := t.(*ast.StarExpr); ok {
		t = star.X
	}
	if x, ok := t.(*ast.Ident); ok {
		return x.Name
	}
	return ""
}

// visit notes the names in code that is reached.
func (r *reach) visit(code ast.Node) {
	if list, ok := code.(*ast.FieldList); ok && list == nil {
		return
	}
	ast.Inspect(code, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.SelectorExpr:
			if !r.ofPackage(n) {
				r.selected[n.Sel.Name] = true
			}
			r.visit(n.X)
			return false
		case *ast.KeyValueExpr:
			if key, ok := n.Key.(*ast.Ident); ok {
				r.selected[key.Name] = true
			}
		case *ast.Field:
			r.visit(n.Type) // the name is the name of a parameter
			return false
		case *ast.CompositeLit:
			r.wholly(n, n.Type)
		case *ast.Ident:
			r.names[n.Name] = true
		}
		return true
	})
}

// wholly notes the type of a literal that gives its fields no names.
func (r *reach) wholly(lit *ast.CompositeLit, typ ast.Expr) {
	switch t := typ.(type) {
	case *ast.Ident:
		spec := r.types[t.Name]
		switch {
		case spec == nil || len(lit.Elts) == 0:
		case fieldsOf(spec) == nil:
			r.wholly(lit, spec.Type)
		default:
			if _, keyed := lit.Elts[0].(*ast.KeyValueExpr); !keyed {
				r.whole[t.Name] = true
			}
		}
	case *ast.StarExpr:
		r.wholly(lit, t.X)
	case *ast.ArrayType:
		r.elements(lit, t.Elt)
	case *ast.MapType:
		r.elements(lit, t.Value)
	}
}

// elements calls wholly for the elements of a literal that do not name their type.
func (r *reach) elements(lit *ast.CompositeLit, typ ast.Expr) {
	for _, e := range lit.Elts {
		if pair, ok := e.(*ast.KeyValueExpr); ok {
			e = pair.Value
		}
		if inner, ok := e.(*ast.CompositeLit); ok && inner.Type == nil {
			r.wholly(inner, typ)
		}
	}
}
