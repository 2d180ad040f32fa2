//! What a dry run has been told of: by now these sessions would be in the store.
//!
//! What always holds: a session that comes again, or whose parent came before, is compared with that file, read a second
//! time. What is never done: events are held in memory.

use std::collections::HashMap;

use super::super::jsonl::Reader;
use super::super::offer::Offer;
#[cfg(feature = "sqlite")]
use super::super::sqlite::Database;
use super::take::{Fate, Imported};
use super::{Item, Kind};
use crate::event::{Event, Header};
use crate::{Import, Result};

/// See the module.
#[derive(Debug, Default)]
pub(super) struct Rehearsal {
    told: HashMap<String, Told>,
}

/// A session that would be stored.
#[derive(Debug)]
pub(super) struct Told {
    item: Item,
    header: Header,
    events: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Role {
    /// It is the session itself.
    Own,
    /// It is the parent, of which so many events were inherited.
    Parent,
}

impl Rehearsal {
    /// Notes what became of the session of `header`.
    pub(super) fn note(&mut self, item: &Item, header: &Header, imported: &Imported) {
        // What is no file cannot be read again, and what is unchanged is there already.
        if matches!(imported.fate, Fate::Unchanged { .. }) || !item.path.is_file() {
            return;
        }
        let told = Told { item: item.clone(), header: header.clone(), events: imported.verdict.events };
        self.told.insert(header.id().to_owned(), told);
    }

    /// What the session of `header` has to be compared with, if anything.
    pub(super) fn find(&self, header: &Header, is_stored: bool) -> Result<Option<Known<'_>>> {
        if let Some(told) = self.told.get(header.id()) {
            Import::check_again(&told.header, header)?;
            return Ok(Some(Known { told, role: Role::Own, end: told.events }));
        }
        let inherited = header.seed_length().filter(|events| *events > 0 && !is_stored);
        let parent = header.parent_session().and_then(|parent| self.told.get(parent));
        Ok(match (parent, inherited) {
            (Some(told), Some(end)) if end <= told.events => Some(Known { told, role: Role::Parent, end }),
            _ => None,
        })
    }
}

/// A session that was told of, and what it is to the one that comes in.
pub(super) struct Known<'a> {
    told: &'a Told,
    role: Role,
    end: u64,
}

impl<'a> Known<'a> {
    /// The database that it is in, if it is in one.
    #[cfg(feature = "sqlite")]
    pub(super) fn database(&self) -> Result<Option<Database>> {
        match &self.told.item.kind {
            Kind::Sqlite(_) => Database::open(&self.told.item.path).map(Some),
            Kind::Jsonl => Ok(None),
        }
    }

    #[cfg(not(feature = "sqlite"))]
    pub(super) fn database(&self) -> Result<Option<()>> {
        Ok(None)
    }

    /// Begins the comparison; `database` is what [`database`](Self::database) gave.
    pub(super) fn compare<'d>(
        self,
        #[cfg(feature = "sqlite")] database: Option<&'d Database>,
        #[cfg(not(feature = "sqlite"))] _: Option<&'d ()>,
    ) -> Result<Comparison<'d>>
    where
        'a: 'd,
    {
        let offer: Box<dyn Offer + 'd> = match &self.told.item.kind {
            Kind::Jsonl => Box::new(Reader::open(&self.told.item.path)?),
            #[cfg(feature = "sqlite")]
            Kind::Sqlite(id) => match database {
                Some(database) => Box::new(database.session(id)?),
                None => {
                    let text = "a session without its database";
                    return Err(crate::Error::new(crate::ErrorKind::Internal, text));
                }
            },
        };
        let header = self.told.header.clone();
        Ok(Comparison { offer, role: self.role, header, next: 0, end: self.end, is_other: false })
    }
}

/// A comparison that goes on event by event.
pub(super) struct Comparison<'a> {
    offer: Box<dyn Offer + 'a>,
    role: Role,
    header: Header,
    next: u64,
    end: u64,
    /// The child goes its own way before the end of what it says it inherited.
    is_other: bool,
}

impl Comparison<'_> {
    /// Compares the next event.
    pub(super) fn take(&mut self, event: &Event) -> Result<()> {
        if self.next >= self.end || self.is_other {
            return Ok(());
        }
        self.next += 1;
        if self.offer.next_event()?.as_ref() != Some(event) {
            match self.role {
                Role::Own => return Err(Import::differs(self.header.id(), event.seq())),
                Role::Parent => self.is_other = true,
            }
        }
        Ok(())
    }

    /// Whether it is the session itself with a header that is another text.
    pub(super) fn has_other_header(&self, header: &Header) -> bool {
        self.role == Role::Own && self.header.to_line() != header.to_line()
    }

    /// What would become of the session, of which `events` came.
    pub(super) fn fate(self, events: u64) -> Fate {
        match self.role {
            Role::Own if events <= self.end => Fate::Unchanged { stored: self.end },
            Role::Own => Fate::Extended { from: self.end },
            Role::Parent if self.is_other || events < self.end => Fate::Created,
            Role::Parent => Fate::Forked { parent: self.header.id().to_owned(), inherited: self.end },
        }
    }
}
