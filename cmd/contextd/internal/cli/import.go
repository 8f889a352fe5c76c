package cli

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	contextdv1 "github.com/contextd/contextd/proto/contextd/v1"
)

func newImport(c *client) *cobra.Command {
	header := &contextdv1.ImportHeader{}
	cmd := &cobra.Command{
		Use:   "import FILE",
		Short: "Import a transcript of another harness as a session",
		Long: `Import a transcript of another harness as a session; FILE - is stdin.

An import may be repeated: events that the session holds already are not
appended again.`,
		Example: `  contextd import ~/.claude/projects/x/1234.jsonl --session my-session
  contextd import rollout.jsonl --harness codex --embedded ./data`,
		Args: cobra.ExactArgs(1),
		RunE: c.run(func(cmd *cobra.Command, api api, args []string) error {
			if header.GetSessionId() == "" {
				header.SessionId = sessionOf(args[0])
			}
			in, closeInput, err := openInput(cmd, args[0])
			if err != nil {
				return err
			}
			resp, err := sendTranscript(cmd, api, header, in)
			if closeErr := closeInput(); err == nil {
				err = closeErr
			}
			if err != nil {
				return err
			}
			return c.writeImport(cmd, resp)
		}),
	}
	cmd.Flags().StringVar(&header.SessionId, "session", "", "`id` of the session; the file's name without its ending if not given")
	cmd.Flags().StringVar(&header.Harness, "harness", "", "`name` of the format; told from the content if not given")
	return cmd
}

// sessionOf makes a session id of a file's name.
func sessionOf(path string) string {
	base := filepath.Base(path)
	base = strings.TrimSuffix(base, filepath.Ext(base))
	id := strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9', strings.ContainsRune("._:@-", r):
			return r
		default:
			return '_'
		}
	}, base)
	id = strings.TrimLeft(id, ".:@-")
	if id == "" {
		return "stdin"
	}
	return id
}

func openInput(cmd *cobra.Command, path string) (io.Reader, func() error, error) {
	if path == "-" {
		return cmd.InOrStdin(), func() error { return nil }, nil
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, nil, err
	}
	return f, f.Close, nil
}

// sendBytes is how much of a file goes into one message.
const sendBytes = 31 << 10

func sendTranscript(cmd *cobra.Command, api api, header *contextdv1.ImportHeader, in io.Reader) (*contextdv1.ImportTranscriptResponse, error) {
	stream, err := api.transcripts.ImportTranscript(cmd.Context())
	if err != nil {
		return nil, err
	}
	err = stream.Send(&contextdv1.ImportTranscriptRequest{Part: &contextdv1.ImportTranscriptRequest_Header{Header: header}})
	for err == nil {
		// gRPC keeps what it is given until it is sent: a new piece each time.
		piece := make([]byte, sendBytes)
		n, readErr := io.ReadFull(in, piece)
		if n > 0 {
			err = stream.Send(&contextdv1.ImportTranscriptRequest{Part: &contextdv1.ImportTranscriptRequest_Data{Data: piece[:n]}})
		}
		if readErr != nil {
			if !errors.Is(readErr, io.EOF) && !errors.Is(readErr, io.ErrUnexpectedEOF) {
				return nil, readErr
			}
			break
		}
	}
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	// Where sending failed with io.EOF, this tells why.
	return stream.CloseAndRecv()
}

func (c *client) writeImport(cmd *cobra.Command, resp *contextdv1.ImportTranscriptResponse) error {
	if c.json {
		return writeJSON(cmd.OutOrStdout(), resp)
	}
	for _, w := range resp.GetWarnings() {
		fmt.Fprintf(cmd.ErrOrStderr(), "warning: %s\n", oneLine(w, 0))
	}
	s := resp.GetSession()
	_, err := fmt.Fprintf(cmd.OutOrStdout(), "%s: %d events appended, %d in the session, %d turns, %d compactions, %d duplicates left out, %d ids renamed\n",
		s.GetSessionId(), resp.GetEvents(), s.GetHeadSeq(), s.GetTurns(), resp.GetCompactions(), resp.GetDroppedDuplicates(), resp.GetRenamedIds())
	return err
}
