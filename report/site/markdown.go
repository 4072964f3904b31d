package site

import (
	"bytes"
	"html"
	"net/url"
	"path"
	"regexp"
	"strings"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/renderer"
	"github.com/yuin/goldmark/text"
	"github.com/yuin/goldmark/util"
)

// markdown is CommonMark with the tables, links and lists of GitHub. A column is aligned by an
// attribute, since the pages allow no styles in their text.
var markdown = goldmark.New(
	goldmark.WithExtensions(
		extension.NewTable(extension.WithTableCellAlignMethod(extension.TableCellAlignAttribute)),
		// The name of a lock, with its release after an @, is no address of a person.
		extension.NewLinkify(extension.WithLinkifyEmailRegexp(regexp.MustCompile(`[^\s\S]`))), extension.Strikethrough, extension.TaskList),
	goldmark.WithParserOptions(parser.WithAutoHeadingID()),
	goldmark.WithRendererOptions(renderer.WithNodeRenderers(util.Prioritized(rawAsText{}, 100))),
)

// rawAsText renders HTML in a document as text, except for line breaks and comments.
type rawAsText struct{}

func (rawAsText) RegisterFuncs(r renderer.NodeRendererFuncRegisterer) {
	r.Register(ast.KindRawHTML, func(w util.BufWriter, source []byte, n ast.Node, entering bool) (ast.WalkStatus, error) {
		if entering {
			raw := string(n.(*ast.RawHTML).Segments.Value(source))
			switch {
			case isComment(raw):
			case isBreak(raw):
				_, _ = w.WriteString(raw)
			default:
				_, _ = w.WriteString(html.EscapeString(raw))
			}
		}
		return ast.WalkSkipChildren, nil
	})
	r.Register(ast.KindHTMLBlock, func(w util.BufWriter, source []byte, n ast.Node, entering bool) (ast.WalkStatus, error) {
		if entering {
			if raw := rawBlock(n.(*ast.HTMLBlock), source); !isComment(raw) {
				_, _ = w.WriteString("<pre>" + html.EscapeString(raw) + "</pre>\n")
			}
		}
		return ast.WalkSkipChildren, nil
	})
}

func rawBlock(n *ast.HTMLBlock, source []byte) string {
	raw := string(n.Lines().Value(source))
	if n.HasClosure() {
		raw += string(n.ClosureLine.Value(source))
	}
	return raw
}

// isComment reports whether HTML is one comment.
func isComment(raw string) bool {
	inner, begins := strings.CutPrefix(strings.TrimSpace(raw), "<!--")
	return begins && strings.Index(inner, "-->") == len(inner)-len("-->")
}

func isBreak(raw string) bool { return raw == "<br>" || raw == "<br/>" || raw == "<br />" }

// A document is a Markdown file of the repository.
type document struct {
	name   string // its path
	title  string // its first heading, else its path
	label  string // its title, with its path if other documents have the same title
	source []byte
	root   ast.Node
}

func parse(name string, source []byte) *document {
	d := &document{name: name, title: name, source: source, root: markdown.Parser().Parse(text.NewReader(source))}
	for n := d.root.FirstChild(); n != nil; n = n.NextSibling() {
		if n.Kind() == ast.KindHeading {
			d.title = d.textOf(n)
			break
		}
	}
	return d
}

// textOf returns the text of a node without its marks.
func (d *document) textOf(n ast.Node) string {
	var b strings.Builder
	_ = ast.Walk(n, func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		if !entering {
			if n.Type() == ast.TypeBlock {
				b.WriteByte(' ')
			}
			return ast.WalkContinue, nil
		}
		switch n := n.(type) {
		case *ast.Text:
			b.Write(n.Value(d.source))
			if n.SoftLineBreak() || n.HardLineBreak() {
				b.WriteByte(' ')
			}
		case *ast.String:
			b.Write(n.Value)
		case *ast.AutoLink:
			b.Write(n.Label(d.source))
		case *ast.RawHTML:
			switch raw := string(n.Segments.Value(d.source)); {
			case isComment(raw):
			case isBreak(raw):
				b.WriteByte(' ')
			default:
				b.WriteString(raw)
			}
		case *ast.HTMLBlock:
			if raw := rawBlock(n, d.source); !isComment(raw) {
				b.WriteString(raw)
			}
		default:
			if n.Type() == ast.TypeBlock && n.FirstChild() == nil {
				b.Write(n.Lines().Value(d.source))
			}
		}
		return ast.WalkContinue, nil
	})
	return strings.Join(strings.Fields(b.String()), " ")
}

// destination returns where a link or a picture leads, nil for another node.
func destination(n ast.Node) *[]byte {
	switch n := n.(type) {
	case *ast.Link:
		return &n.Destination
	case *ast.Image:
		return &n.Destination
	}
	return nil
}

// target returns the file of the repository that a link of the document leads to, and the place
// in it. It returns "" for an address elsewhere and for a place in the document itself.
func (d *document) target(to []byte) (file, place string) {
	u, err := url.Parse(string(to))
	if err != nil || u.Scheme != "" || u.Host != "" || u.Path == "" {
		return "", ""
	}
	return path.Join(path.Dir(d.name), u.Path), u.EscapedFragment()
}

// links returns the links and pictures of the document.
func (d *document) links() []ast.Node {
	var out []ast.Node
	_ = ast.Walk(d.root, func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		if entering && destination(n) != nil {
			out = append(out, n)
		}
		return ast.WalkContinue, nil
	})
	return out
}

// targets returns the files of the repository that the document links to.
func (d *document) targets() []string {
	var out []string
	for _, n := range d.links() {
		if file, _ := d.target(*destination(n)); file != "" {
			out = append(out, file)
		}
	}
	return out
}

// leadTo makes the links of the document lead to the files of a site. A link to a file that the
// site does not have, such as source code, becomes its text.
func (d *document) leadTo(page string, at func(file string) string) {
	for _, n := range d.links() {
		to := destination(n)
		file, place := d.target(*to)
		if file == "" {
			continue
		}
		if there := at(file); there != "" {
			address := link(page, there)
			if place != "" {
				address += "#" + place
			}
			*to = []byte(address)
			continue
		}
		parent := n.Parent()
		for child := n.FirstChild(); child != nil; child = n.FirstChild() {
			parent.InsertBefore(parent, n, child)
		}
		parent.RemoveChild(parent, n)
	}
}

// heading returns the level and the place of a heading, 0 for another node.
func heading(n ast.Node) (level int, id string) {
	h, ok := n.(*ast.Heading)
	if !ok {
		return 0, ""
	}
	if value, ok := h.AttributeString("id"); ok {
		id = string(value.([]byte))
	}
	return h.Level, id
}

// sections returns the entries of the search: one for each heading, with the text below it.
func (d *document) sections(page string) []entry {
	out := []entry{{page: page, title: d.label}}
	for n := d.root.FirstChild(); n != nil; n = n.NextSibling() {
		if level, id := heading(n); level > 1 {
			out = append(out, entry{page: page, place: id, title: d.label, heading: d.textOf(n)})
			continue
		}
		last := &out[len(out)-1]
		if level, _ := heading(n); level == 0 {
			last.text = strings.TrimSpace(last.text + " " + d.textOf(n))
		}
	}
	return out
}

// A chapter is a heading of the second level.
type chapter struct{ Place, Heading string }

func (d *document) chapters() []chapter {
	var out []chapter
	for n := d.root.FirstChild(); n != nil; n = n.NextSibling() {
		if level, id := heading(n); level == 2 {
			out = append(out, chapter{id, d.textOf(n)})
		}
	}
	return out
}

// lead takes the first heading and the first paragraph out of the document.
func (d *document) lead() *document {
	out := &document{name: d.name, title: d.title, source: d.source, root: ast.NewDocument()}
	for n := d.root.FirstChild(); n != nil; n = d.root.FirstChild() {
		level, _ := heading(n)
		if level != 1 && n.Kind() != ast.KindParagraph {
			break
		}
		out.root.AppendChild(out.root, n)
		if level != 1 {
			break
		}
	}
	return out
}

// scrolled matches the elements that may be wider than the page. They scroll, and the keyboard
// reaches them.
var scrolled = regexp.MustCompile(`<(/?)(table|pre)>|<p>(<img [^>]*>)</p>`)

// html renders the document.
func (d *document) html() string {
	var b bytes.Buffer
	if err := markdown.Renderer().Render(&b, d.source, d.root); err != nil {
		panic("a document cannot be rendered into memory: " + err.Error())
	}
	return scrolled.ReplaceAllStringFunc(b.String(), func(tag string) string {
		switch tag {
		case "<table>":
			return `<div class="wide" tabindex="0" role="region" aria-label="table"><table>`
		case "</table>":
			return "</table></div>"
		case "<pre>":
			return `<pre tabindex="0">`
		}
		if picture := scrolled.FindStringSubmatch(tag)[3]; picture != "" {
			return `<div class="wide picture" tabindex="0" role="region" aria-label="picture">` + picture + "</div>"
		}
		return tag
	})
}
