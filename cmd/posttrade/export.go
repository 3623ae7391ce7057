package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"

	"posttrade/app/settings"
	"posttrade/httpapi/client"
	"posttrade/sidecars/store"
)

// exportUsage is the form of the command
const exportUsage = "export trades|blotter|positions [flags]"

// exportTables are the tables, and the service that each is asked of: the rows of trades are in
// SQL, the others in the matcher's memory.
var exportTables = map[string]string{client.TableTrades: "trade-processor",
	client.TableBlotter: "order-matcher", client.TablePositions: "order-matcher"}

// runExport is `posttrade export`: a whole table of a running server as a file.
//
// Everything that can be judged without the server is judged first, so that a wrong command line
// leaves no file.
func runExport(args []string, stdout, stderr io.Writer) int {
	var q client.ExportQuery
	var to string
	f := newFlags(exportUsage,
		"Asks the server that runs on data.dir for all rows of a table.\n"+
			"  trades     the rows of the projection, with their settlement\n"+
			"  blotter    the executed fills that the blotter holds\n"+
			"  positions  the position of every account in every security")
	f.StringVar(&q.Format, "format", "csv", "`csv` or parquet")
	f.StringVar(&q.AsOf, "as-of", "", "the end of this `date`, yyyy-mm-dd, in settlement.timezone; "+
		"default now")
	f.StringVar(&to, "o", "-", "`file` to write, - for standard output")
	c, err := f.read(args, 1, stdout)
	if err != nil {
		return settings.Exit(stderr, err)
	}
	q.Table = strings.Join(f.rest, " ")
	service := exportTables[q.Table]
	switch {
	case service == "":
		return settings.Exit(stderr, settings.Usagef("usage: posttrade %s", exportUsage))
	case !slices.Contains([]string{"csv", "parquet"}, q.Format):
		return settings.Exit(stderr, settings.Usagef("format: want csv or parquet, got %s",
			settings.Printable(q.Format)))
	}
	if _, err := store.ParseDate(q.AsOf); q.AsOf != "" && err != nil {
		return settings.Exit(stderr, settings.Usagef("as-of: want yyyy-mm-dd, got %s",
			settings.Printable(q.AsOf)))
	}
	server, err := localClient(c, service, time.Now())
	if err != nil {
		return settings.Exit(stderr, err)
	}
	defer server.Close()
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	return settings.Exit(stderr, exportTable(ctx, server, q, to, stdout, stderr))
}

// exportTable writes the file. Under its own name stands nothing but a whole one: the rows go to a
// file beside it, which is renamed at the end and removed after an error. Only the owner
// may read it: it has the rows of clients. "-" is standard output.
func exportTable(ctx context.Context, server *client.Client, q client.ExportQuery, to string,
	stdout, stderr io.Writer) error {
	if to == "-" {
		return download(ctx, server, q, stdout, stderr)
	}
	part := to + ".part"
	out, err := os.OpenFile(part, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	err = errors.Join(download(ctx, server, q, out, stderr), out.Close())
	if err == nil {
		err = os.Rename(part, to)
	}
	if err != nil {
		return errors.Join(err, os.Remove(part))
	}
	return nil
}

// download copies a file to out, and says how far it is.
//
// The rows are copied as they come; nothing is held in memory.
func download(ctx context.Context, server *client.Client, q client.ExportQuery, out,
	stderr io.Writer) (err error) {
	file, err := server.Export(ctx, q)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	p := &progress{Writer: out, to: stderr, table: q.Table, begun: time.Now()}
	p.said = p.begun
	if _, err := io.Copy(p, file); err != nil {
		return err
	}
	fmt.Fprintf(stderr, "%s: %d rows, %d bytes in %v\n", q.Table, file.Rows(), p.bytes,
		time.Since(p.begun).Round(time.Millisecond))
	return nil
}

// progress counts what is written, and says it every second, on stderr: stdout may be the file.
type progress struct {
	io.Writer
	// to gets the lines about the progress; the file goes to Writer.
	to    io.Writer
	table string
	// bytes were written so far; said is when the last line was printed.
	bytes       int64
	begun, said time.Time
}

// Write implements io.Writer.
func (p *progress) Write(b []byte) (int, error) {
	n, err := p.Writer.Write(b)
	p.bytes += int64(n)
	if now := time.Now(); now.Sub(p.said) >= time.Second {
		p.said = now
		fmt.Fprintf(p.to, "%s: %d MB, %.1f MB/s\n", p.table, p.bytes>>20,
			float64(p.bytes)/(1<<20)/now.Sub(p.begun).Seconds())
	}
	return n, err
}
