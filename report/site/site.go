// Package site writes what a repository holds as a static site: its documents, its results, and
// a page of each recording. The site needs no server. All its links are relative, and it asks
// no other host for anything, so that it works from disk and on any host.
//
// It renders and links, and plays nothing: the caller gives it the index of the results and a
// function that draws a recording.
package site

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"

	"lockstep/report"
)

// The folders of a repository that a site shows, and the documents beside them.
const (
	docs    = "docs"
	results = "results"
	readme  = "README.md"
)

// guides are the documents in the root of a repository.
var guides = []string{readme, "CONTRIBUTING.md"}

// A Source has the parts of a site.
type Source struct {
	// Repository has the folders docs and results. The site opens no file outside of it.
	Repository *os.Root
	// Index is the index of the folder results. Its recordings are relative to that folder.
	Index report.Index
	// Page draws a recording of the folder results. shared and the links are as for
	// [report.WritePage]. A recording for which it returns an error has no page: the site has
	// the recording itself instead.
	Page func(recording, shared string, links ...report.Link) ([]byte, error)
	// Progress is told how many recordings are drawn; nil: nobody asks.
	Progress func(done, of int, recording string)
}

// A Written says what a site consists of.
type Written struct {
	Documents, Runs int
	// Without are the errors of the recordings that have no page, by recording.
	Without map[string]error
}

// Write writes the site into the folder and removes the files of an earlier site that it does
// not have any more. It returns the error of ctx if ctx ends; what was written stays.
func (f *Folder) Write(ctx context.Context, s Source) (w Written, err error) {
	defer func() { err = errors.Join(err, f.close(err == nil)) }()
	b := &builder{Source: s, folder: f, pages: map[string]string{}, wanted: map[string]bool{}}
	w.Without = map[string]error{}
	if err := b.read(); err != nil {
		return w, err
	}
	if err := b.assets(); err != nil {
		return w, err
	}
	if w.Runs, err = b.runs(ctx, w.Without); err != nil {
		return w, err
	}
	w.Documents = len(b.documents)
	return w, errors.Join(b.files(), b.write())
}

// A builder makes one site.
type builder struct {
	Source
	folder    *Folder
	documents []*document
	// pages maps the files of the repository to the files of the site.
	pages map[string]string
	// wanted are the files of the repository that documents link to.
	wanted map[string]bool
	search []entry
}

// read reads the documents.
func (b *builder) read() error {
	files := slices.Clone(guides)
	for _, folder := range []string{docs, results} {
		err := fs.WalkDir(b.Repository.FS(), folder, func(name string, d fs.DirEntry, err error) error {
			if err == nil && d.Type().IsRegular() && path.Ext(name) == ".md" {
				files = append(files, name)
			}
			return err
		})
		if err != nil {
			return fmt.Errorf("the repository: %w", err)
		}
	}
	b.pages[docs], b.pages[results] = docs+"/index.html", results+"/index.html"
	for _, name := range files {
		text, err := b.Repository.ReadFile(name)
		if errors.Is(err, fs.ErrNotExist) && slices.Contains(guides, name) {
			continue
		}
		if err != nil {
			return fmt.Errorf("the repository: %w", err)
		}
		d := parse(name, text)
		b.documents = append(b.documents, d)
		b.pages[name] = strings.TrimSuffix(name, ".md") + ".html"
		for _, to := range d.targets() {
			b.wanted[to] = true
		}
	}
	titles := map[string]int{}
	for _, d := range b.documents {
		titles[d.title]++
	}
	for _, d := range b.documents {
		if d.label = d.title; titles[d.title] > 1 {
			d.label += " (" + d.name + ")"
		}
	}
	return nil
}

// runs draws the recordings of the index and those that documents link to.
func (b *builder) runs(ctx context.Context, without map[string]error) (int, error) {
	var all []string
	b.Index.EachRecording(func(recording string, _ *string) { all = append(all, recording) })
	for name := range b.wanted {
		if recording, inside := strings.CutPrefix(name, results+"/"); inside && path.Ext(name) == ".lockstep" && b.isFile(name) {
			all = append(all, recording)
		}
	}
	slices.Sort(all)
	all = slices.Compact(all)
	for i, recording := range all {
		if err := ctx.Err(); err != nil {
			return i, err
		}
		if b.Progress != nil {
			b.Progress(i, len(all), recording)
		}
		if !fs.ValidPath(recording) {
			without[recording] = fmt.Errorf("%s: not in the folder", recording)
			continue
		}
		name := results + "/" + recording
		page := strings.TrimSuffix(name, ".lockstep") + ".html"
		text, err := b.Page(recording, link(page, sharedFile), report.Link{Text: "Lockstep", To: link(page, "index.html")}, report.Link{Text: "all runs", To: link(page, b.pages[results])})
		if err != nil {
			without[recording] = err
			b.wanted[name] = b.isFile(name)
			continue
		}
		if err := b.folder.write(page, text); err != nil {
			return i, err
		}
		b.pages[name] = page
	}
	b.Index.EachRecording(func(recording string, to *string) {
		if b.reaches(results + "/" + recording) {
			*to = link(b.pages[results], b.siteFile(results+"/"+recording))
		}
	})
	return len(all) - len(without), nil
}

func (b *builder) isFile(name string) bool {
	info, err := b.Repository.Stat(name)
	return err == nil && info.Mode().IsRegular()
}

// reaches reports whether the site has a file of the repository.
func (b *builder) reaches(name string) bool { return b.siteFile(name) != "" }

// siteFile returns the file of the site for a file of the repository, "" for none. Files that are
// neither documents nor recordings keep their names, and so do recordings without a page.
func (b *builder) siteFile(name string) string {
	if page, ok := b.pages[name]; ok {
		return page
	}
	shown := strings.HasPrefix(name, docs+"/") || strings.HasPrefix(name, results+"/")
	if shown && b.wanted[name] && b.isFile(name) {
		return name
	}
	return ""
}

// files copies the files that the site has as they are.
func (b *builder) files() error {
	for name, wanted := range b.wanted {
		if !wanted || b.siteFile(name) != name {
			continue
		}
		text, err := b.Repository.ReadFile(name)
		if err != nil {
			return fmt.Errorf("the repository: %w", err)
		}
		if err := b.folder.write(name, text); err != nil {
			return err
		}
	}
	return nil
}

// write writes the documents, the front page, the lists and the index of the search.
func (b *builder) write() error {
	for _, d := range b.documents {
		b.search = append(b.search, d.sections(b.pages[d.name])...)
		if err := b.page(b.pages[d.name], d.label, b.render(d)); err != nil {
			return err
		}
	}
	var index bytes.Buffer
	x := b.Index
	x.Title = "Lockstep: runs"
	x.Links = []report.Link{{Text: "Lockstep", To: link(b.pages[results], "index.html")}}
	for _, part := range b.partsFrom(b.pages[results]) {
		if !part.Here {
			x.Links = append(x.Links, part.Link)
		}
	}
	if err := report.WriteIndex(&index, x); err != nil {
		return err
	}
	if err := b.folder.write(b.pages[results], index.Bytes()); err != nil {
		return err
	}
	b.searchRuns()
	return errors.Join(b.front(), b.list(), b.writeSearch())
}

// link returns the address of a file of the site, relative to a page of the site.
func link(page, to string) string {
	return strings.Repeat("../", strings.Count(page, "/")) + escaped(to)
}
