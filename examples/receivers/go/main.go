// Command receiver receives webhooks with net/http: each is handled once, and confirmed after the commit.
package main

import (
	"database/sql"
	"io"
	"log"
	"net/http"
	"os"

	heliograph "heliograph/clients/go"

	_ "modernc.org/sqlite"
)

func main() {
	secret := os.Getenv("HELIOGRAPH_WEBHOOK_SECRET")
	db, err := sql.Open("sqlite", os.Getenv("DATABASE")+"?_pragma=journal_mode(WAL)&_pragma=busy_timeout(10000)&_txlock=immediate")
	if err == nil {
		_, err = db.Exec(`CREATE TABLE IF NOT EXISTS seen (webhook_id TEXT PRIMARY KEY);
			CREATE TABLE IF NOT EXISTS handled (webhook_id TEXT, event_type TEXT, event_id TEXT)`)
	}
	if err != nil || secret == "" {
		log.Fatal("set HELIOGRAPH_WEBHOOK_SECRET and DATABASE: ", err)
	}
	http.HandleFunc("POST /webhooks", func(w http.ResponseWriter, r *http.Request) {
		// The raw bytes: the signature covers them, and not what a parser makes of them.
		body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, 8<<20))
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		webhook, err := heliograph.VerifyWebhook(body, r.Header, secret)
		if err != nil {
			http.Error(w, err.Error(), http.StatusUnauthorized)
			return
		}
		if err := store(db, webhook); err != nil {
			// The webhook comes again.
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		w.WriteHeader(http.StatusNoContent)
	})
	log.Fatal(http.ListenAndServe("127.0.0.1:"+os.Getenv("PORT"), nil))
}

// store does both in one transaction: that it was seen, and what you do about it.
func store(db *sql.DB, webhook *heliograph.Webhook) error {
	tx, err := db.Begin()
	if err != nil {
		return err
	}
	defer tx.Rollback()
	seen, err := tx.Exec("INSERT INTO seen VALUES (?) ON CONFLICT DO NOTHING", webhook.ID)
	if err != nil {
		return err
	}
	if isNew, _ := seen.RowsAffected(); isNew == 1 {
		if err := handle(tx, webhook); err != nil {
			return err
		}
	}
	return tx.Commit()
}

func handle(tx *sql.Tx, webhook *heliograph.Webhook) error {
	_, err := tx.Exec("INSERT INTO handled VALUES (?, ?, ?)", webhook.ID, webhook.EventType, webhook.EventID)
	return err
}
